package registry

import (
	"kaz/internal/localazure/behaviour"
)

// passwordsField is the field of a registry's document with the admin user's passwords.
const passwordsField = behaviour.Private + "passwords"

// Admin returns a registry's admin user with both passwords, if the admin user is enabled.
func Admin(registry behaviour.Object) (user string, passwords [2]string, enabled bool) {
	return behaviour.Text(registry, "name"),
		[2]string{behaviour.Text(registry, passwordsField+".password"), behaviour.Text(registry, passwordsField+".password2")},
		behaviour.Bool(registry, "properties.adminUserEnabled")
}

func newPassword(c *behaviour.Call) string {
	const size = 52
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	password := make([]byte, size)
	for i := range password {
		password[i] = alphabet[c.Intn(len(alphabet))]
	}
	return string(password)
}

func listCredentials(c *behaviour.Call) (any, error) {
	user, passwords, enabled := Admin(c.Doc)
	if !enabled {
		return nil, behaviour.Invalid("UnAuthorizedForCredentialOperations",
			"Cannot perform credential operations for %s as admin user is disabled. Kindly enable admin user as per docs: "+
				"https://docs.microsoft.com/en-us/azure/container-registry/container-registry-authentication#admin-account", c.ID)
	}
	return behaviour.Object{"username": user, "passwords": []any{
		behaviour.Object{"name": "password", "value": passwords[0]},
		behaviour.Object{"name": "password2", "value": passwords[1]},
	}}, nil
}

func regenerateCredential(c *behaviour.Call) (any, error) {
	name := behaviour.Text(c.Body, "name")
	if name != "password" && name != "password2" {
		return nil, behaviour.Invalid("InvalidParameter", "The name of the password '%s' is not valid: password and password2 are.", name)
	}
	if _, err := listCredentials(c); err != nil {
		return nil, err
	}
	behaviour.Set(c.Doc, passwordsField+"."+name, newPassword(c))
	return listCredentials(c)
}
