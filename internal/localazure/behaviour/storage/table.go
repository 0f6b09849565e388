package storage

import (
	"net/http"
	"regexp"
	"strings"

	"kaz/internal/localazure/behaviour"
)

// TableType is the type of tables.
const TableType = AccountType + "/tableServices/tables"

// tables are resources of the control plane and of the data plane alike.
func tables() behaviour.Type {
	style := child(behaviour.NoEtag)
	style.Created, style.Deleted = http.StatusOK, http.StatusNoContent
	return behaviour.Type{
		Name: TableType, Style: style, NoState: true, Own: []string{"properties.tableName", policiesField, madeField},
		Fill: fillTable, Show: showTable, Missing: missing("TableNotFound", "table"),
	}
}

var tableName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*$`)

// CheckTableName refuses names that tables cannot have.
func CheckTableName(name string) error {
	const shortest, longest = 3, 63
	switch {
	case len(name) < shortest || len(name) > longest:
		return behaviour.Invalid("OutOfRangeInput", "The specified resource name length is not within the permissible limits: "+
			"%q has %d characters, %d to %d are allowed.", name, len(name), shortest, longest)
	case !tableName.MatchString(name):
		return behaviour.Invalid("InvalidResourceName", "The specified resource name contains invalid characters: %q needs a letter, "+
			"and letters and digits after it.", name)
	case strings.EqualFold(name, "tables"):
		return behaviour.Invalid("InvalidResourceName", "The specified resource name %q is reserved.", name)
	}
	return nil
}

// identifiersField has the stored access policies of a table as clients of Azure Resource Manager know them.
const identifiersField = "properties.signedIdentifiers"

func fillTable(c *behaviour.Call) error {
	if err := CheckTableName(c.ID.Name()); err != nil {
		return err
	}
	if c.Old == nil {
		c.Doc[madeField] = behaviour.Timestamp(c.Now())
	}
	behaviour.Default(c.Doc, "properties.tableName", c.ID.Name())
	if behaviour.At(c.Doc, identifiersField) == nil {
		return nil
	}
	var policies []Policy
	for _, given := range behaviour.Objects(c.Doc, identifiersField) {
		access := behaviour.Sub(given, "accessPolicy")
		policies = append(policies, Policy{ID: behaviour.Text(given, "id"), Start: behaviour.Text(access, "startTime"),
			Expiry: behaviour.Text(access, "expiryTime"), Permission: behaviour.Text(access, "permission")})
	}
	SetPolicies(c.Doc, policies)
	behaviour.Remove(c.Doc, identifiersField)
	return nil
}

// showTable shows the policies. Replies to writes show those that there are, reads also that there are none.
func showTable(c *behaviour.Call, view behaviour.Object) {
	shown := []any{}
	for _, p := range Policies(view) {
		access := behaviour.Object{}
		for field, value := range map[string]string{"startTime": p.Start, "expiryTime": p.Expiry, "permission": p.Permission} {
			if value != "" {
				access[field] = value
			}
		}
		identifier := behaviour.Object{"id": p.ID}
		if len(access) > 0 {
			identifier["accessPolicy"] = access
		}
		shown = append(shown, identifier)
	}
	behaviour.Hide(view)
	if len(shown) > 0 || c.Verb == behaviour.Get || c.Verb == behaviour.List {
		behaviour.Set(view, identifiersField, shown)
	}
}
