package file

import (
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/storage"
	"kaz/internal/localazure/plane/sas"
	"kaz/internal/localazure/plane/sharedkey"
)

// authorizer checks what a request may do.
type authorizer struct {
	service *Service
	r       *http.Request
}

// check returns an error unless the request may do an operation. A request may have a signature with a key of the account,
// a shared access signature, or a token of Entra ID.
func (z authorizer) check(a account, t target, o operation) error {
	scheme, credential, _ := strings.Cut(z.r.Header.Get("Authorization"), " ")
	query := z.r.URL.Query()
	switch {
	case query.Get("sig") != "":
		return z.checkSAS(a, t, o, query)
	case scheme == "SharedKey":
		return z.checkKey(a, credential)
	case strings.EqualFold(scheme, "Bearer"):
		return z.checkToken(a, credential, o)
	}
	return refuse(http.StatusUnauthorized, "NoAuthenticationInformation",
		"Server failed to authenticate the request. Please refer to the information in the www-authenticate header.")
}

func failed(detail string) *refusal {
	return refuse(http.StatusForbidden, sas.Failed, "%s", sas.Failure(detail))
}

func keysForbidden() *refusal {
	return refuse(http.StatusForbidden, "KeyBasedAuthenticationNotPermitted",
		"Key based authentication is not permitted on this storage account.")
}

// mismatch is the error of a signature or token that is valid, but for other requests.
func mismatch(code, what string) *refusal {
	return refuse(http.StatusForbidden, code, "%s", sas.Mismatch(what))
}

// checkKey checks a signature "ACCOUNT:SIGNATURE".
func (z authorizer) checkKey(a account, credential string) error {
	if name, _, ok := strings.Cut(credential, ":"); ok && name == a.name && !a.sharedKeys {
		return keysForbidden()
	}
	if wrong := sharedkey.Check(z.r, a.name, a.keys, time.Now()); wrong != "" {
		return failed(wrong)
	}
	return nil
}

// checkSAS checks a shared access signature in a URL's query.
func (z authorizer) checkSAS(a account, t target, o operation, v url.Values) error {
	if !a.sharedKeys {
		return keysForbidden()
	}
	if code, message := sas.Check(z.r, v, time.Now()); code != "" {
		return refuse(http.StatusForbidden, code, "%s", message)
	}
	if v.Get("ss") != "" {
		if !sas.SignedBy(a.keys, storage.AccountSASText(a.name, v), v.Get("sig")) {
			return failed("Signature did not match.")
		}
		if !strings.Contains(v.Get("ss"), "f") {
			return mismatch("AuthorizationServiceMismatch", "service")
		}
		if !strings.ContainsAny(v.Get("srt"), resourceTypes(o)) {
			return mismatch("AuthorizationResourceTypeMismatch", "resource type")
		}
	} else if err := checkServiceSAS(a, t, v); err != nil {
		return err
	}
	if !strings.ContainsAny(v.Get("sp"), o.allowedBy) {
		return mismatch("AuthorizationPermissionMismatch", "permission")
	}
	return nil
}

// resourceTypes are the letters of resource types of a shared access signature. An operation needs one of them.
func resourceTypes(o operation) string {
	switch {
	case o.scope == serviceScope:
		return "s"
	case o.scope == shareScope:
		return "c"
	case o.comp == "list":
		return "co"
	}
	return "o"
}

// checkServiceSAS checks the signature for a share or a file.
func checkServiceSAS(a account, t target, v url.Values) error {
	resource := "/file/" + a.name + "/" + t.share
	switch v.Get("sr") {
	case "s":
	case "f":
		if t.scope != fileScope {
			return mismatch("AuthorizationResourceTypeMismatch", "resource type")
		}
		resource += "/" + strings.Join(t.parts, "/")
	default:
		return refuse(http.StatusForbidden, "AuthenticationFailed", "The signed resource %q is not supported: s and f are.", v.Get("sr"))
	}
	if !sas.SignedBy(a.keys, storage.ServiceSASText(resource, v), v.Get("sig")) {
		return failed("Signature did not match.")
	}
	if t.scope == serviceScope || t.scope == shareScope {
		return mismatch("AuthorizationResourceTypeMismatch", "resource type")
	}
	return nil
}

// audiences are the audiences of tokens for storage.
func audiences(host string) []string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return []string{"https://storage.azure.com/", "https://storage.azure.com", "https://" + host, "https://" + host + "/"}
}

// checkToken checks a token of Entra ID.
func (z authorizer) checkToken(a account, text string, o operation) error {
	p, err := z.service.Tokens.AuthenticateFor(text, audiences(z.r.Host)...)
	if err != nil {
		z.service.Log.Info("file request refused", "account", a.name, "reason", err.Error())
		return refuse(http.StatusUnauthorized, "InvalidAuthenticationInfo",
			"Authentication information is not given in the correct format. Check the value of Authorization header.")
	}
	if o.scope == directoryScope || o.scope == fileScope {
		if intent := z.r.Header.Get("x-ms-file-request-intent"); !strings.EqualFold(intent, "backup") {
			return missingHeader("x-ms-file-request-intent")
		}
	}
	if !z.service.allowed(p, a, o) {
		return mismatch("AuthorizationPermissionMismatch", "permission")
	}
	return nil
}

// checkSource returns an error unless the request may read the file of a URL. The permission is the shared access signature
// of the URL or a token in x-ms-copy-source-authorization. If own is true, the authorization of the request is enough.
func (z authorizer) checkSource(a account, t target, u *url.URL, own bool) error {
	read := operation{scope: fileScope, method: http.MethodGet, allowedBy: "r"}
	if u.Query().Get("sig") != "" {
		return z.checkSAS(a, t, read, u.Query())
	}
	if scheme, text, _ := strings.Cut(z.r.Header.Get("x-ms-copy-source-authorization"), " "); strings.EqualFold(scheme, "Bearer") {
		return z.checkToken(a, text, read)
	}
	if own {
		return nil
	}
	return refuse(http.StatusForbidden, "CannotVerifyCopySource",
		"The source needs a shared access signature in its URL, or a token in x-ms-copy-source-authorization.")
}

// verbs are the ends of the actions of the permissions of operations.
var verbs = map[string]string{"r": "read", "l": "read", "w": "write", "cw": "write", "d": "delete"}

// allowed reports whether the roles of a principal permit an operation. Operations on the service and on shares need
// actions. Operations on content need data actions, and the permission to bypass the access control lists of files.
func (s *Service) allowed(p *behaviour.Principal, a account, o operation) (ok bool) {
	const files = "Microsoft.Storage/storageAccounts/fileServices/"
	verb := verbs[o.allowedBy]
	s.Azure.Look(func(w behaviour.World) {
		switch o.scope {
		case serviceScope:
			ok = w.Allowed(p, files+verb, a.id) || verb == "read" && w.Allowed(p, files+"shares/read", a.id)
		case shareScope:
			ok = w.Allowed(p, files+"shares/"+verb, a.id)
		default:
			backup := files + "readFileBackupSemantics/action"
			if verb != "read" {
				backup = files + "writeFileBackupSemantics/action"
			}
			ok = s.allowedContent(w, p, a.id, files+"fileshares/files/"+verb, backup)
		}
	})
	return ok
}

func (s *Service) allowedContent(w behaviour.World, p *behaviour.Principal, id azure.ID, actions ...string) bool {
	for _, action := range actions {
		if !w.AllowedData(p, action, id) {
			return false
		}
	}
	return true
}
