package schema

import (
	"regexp"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/catalog"
)

// Malformed returns the provider's error for a request that it cannot parse. It also stands for errors with a code that
// none of our sources shows.
func Malformed(code, format string, args ...any) error {
	return behaviour.Invalid("InvalidRequestFormat", "Cannot parse the request.").With(code, format, args...)
}

// nameForm matches the names that Azure allows for a network resource.
var nameForm = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]{0,78}[A-Za-z0-9_])?$`)

func CheckName(id azure.ID) error {
	if nameForm.MatchString(id.Name()) {
		return nil
	}
	return behaviour.Invalid("InvalidResourceName",
		"Resource name %s is invalid. The name can be up to 80 characters long. It must begin with a word character, and it must "+
			"end with a word character or with '_'. The name may contain word characters or '.', '-', '_'.", id.Name())
}

// Choose checks that a value is allowed and writes it in Azure's spelling. It writes the default for no value.
func Choose(c *behaviour.Call, path, otherwise string, allowed ...string) error {
	given := behaviour.At(c.Doc, path)
	if given == nil {
		if otherwise != "" {
			behaviour.Set(c.Doc, path, otherwise)
		}
		return nil
	}
	text, _ := given.(string)
	for _, a := range allowed {
		if strings.EqualFold(a, text) {
			behaviour.Set(c.Doc, path, a)
			return nil
		}
	}
	return Malformed("InvalidJson", "Error converting value %q of %s of resource %s. Allowed values are: %s.", text, path, c.ID,
		strings.Join(allowed, ", "))
}

// Required is Choose without a default.
func Required(c *behaviour.Call, path string, allowed ...string) error {
	if behaviour.At(c.Doc, path) == nil {
		return Missing(c, path)
	}
	return Choose(c, path, "", allowed...)
}

func Missing(c *behaviour.Call, path string) error {
	return Malformed("MissingRequiredProperty", "Resource %s has no value for the required property %s.", c.ID, path)
}

// Number checks a whole number. It writes the default for no value, unless otherwise is negative.
func Number(c *behaviour.Call, path string, otherwise, least, most int) error {
	if behaviour.At(c.Doc, path) == nil {
		if otherwise >= 0 {
			behaviour.Set(c.Doc, path, otherwise)
		}
		return nil
	}
	n, ok := behaviour.Int(c.Doc, path)
	if !ok || n < least || n > most {
		return Malformed("InvalidPropertyValue", "Value %v of %s of resource %s is invalid. It must be a whole number from %d to %d.",
			behaviour.At(c.Doc, path), path, c.ID, least, most)
	}
	behaviour.Set(c.Doc, path, n)
	return nil
}

// Flag checks a boolean and writes the default for no value.
func Flag(c *behaviour.Call, path string, otherwise bool) error {
	switch v := behaviour.At(c.Doc, path).(type) {
	case nil:
		behaviour.Set(c.Doc, path, otherwise)
	case bool:
	case string:
		if !strings.EqualFold(v, "true") && !strings.EqualFold(v, "false") {
			return Malformed("InvalidJson", "Could not convert string to boolean: %s. Path '%s' of resource %s.", v, path, c.ID)
		}
		behaviour.Set(c.Doc, path, strings.EqualFold(v, "true"))
	default:
		return Malformed("InvalidJson", "Path '%s' of resource %s must be a boolean.", path, c.ID)
	}
	return nil
}

// Flags is Flag for several properties with the default false.
func Flags(c *behaviour.Call, paths ...string) error {
	for _, path := range paths {
		if err := Flag(c, path, false); err != nil {
			return err
		}
	}
	return nil
}

// List checks that there is an array at each path and writes an empty one for no value.
func List(c *behaviour.Call, paths ...string) error {
	for _, path := range paths {
		switch behaviour.At(c.Doc, path).(type) {
		case nil:
			behaviour.Set(c.Doc, path, []any{})
		case []any:
		default:
			return Malformed("InvalidJson", "Path '%s' of resource %s must be an array.", path, c.ID)
		}
	}
	return nil
}

// Reference checks that a {"id": ...} refers to a resource of the type, and returns the id.
func Reference(c *behaviour.Call, path, fullType string) (azure.ID, error) {
	id := behaviour.RefID(c.Doc, path)
	if id == "" {
		return "", Malformed("MissingJsonReferenceId", "Value for reference id is missing. Path %s of resource %s.", path, c.ID)
	}
	if _, err := azure.ParseID(string(id)); err != nil || !id.Is(fullType) {
		return "", Malformed("InvalidJsonReferenceId",
			"Value for reference id '%s' is invalid. Path %s of resource %s must be the id of a %s.", id, path, c.ID, fullType)
	}
	return id, nil
}

// FirstError calls the checks in turn and returns the first error.
func FirstError(checks ...func() error) error {
	for _, check := range checks {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// CheckZones checks the document's availability zones.
func CheckZones(c *behaviour.Call) error {
	asked := behaviour.Texts(c.Doc, "zones")
	if len(asked) == 0 {
		delete(c.Doc, "zones")
		return nil
	}
	for _, doc := range []behaviour.Object{c.Doc, c.Parent} {
		if behaviour.At(doc, "extendedLocation") != nil {
			return Malformed("AvailabilityZonesNotSupportedInExtendedLocation",
				"Resource %s cannot have zones: it is in extended location %s.", c.ID, behaviour.Text(doc, "extendedLocation.name"))
		}
	}
	region, _ := catalog.FindRegion(c.Location())
	if len(region.Zones) == 0 {
		return behaviour.Invalid("LocationNotSupportAvailabilityZones",
			"Resource %s cannot have zones: the location '%s' does not support availability zones.", c.ID, c.Location())
	}
	for _, zone := range asked {
		if !slices.Contains(region.Zones, zone) {
			return behaviour.Invalid("InvalidAvailabilityZone",
				"Zone '%s' of resource %s is invalid. The zones of location '%s' are: %s.", zone, c.ID, region.Name,
				strings.Join(region.Zones, ", "))
		}
	}
	return nil
}

// CheckLimit returns an error if have is over the limit.
func CheckLimit(c *behaviour.Call, code, what string, have, limit int) error {
	if have <= limit {
		return nil
	}
	return behaviour.Invalid(code, "Resource %s has %d %s. The limit is %d.", c.ID, have, what, limit)
}

// IsStandard reports whether a document has a Standard SKU.
func IsStandard(doc behaviour.Object) bool {
	sku := behaviour.Text(doc, "sku.name")
	return strings.EqualFold(sku, "Standard") || strings.EqualFold(sku, "StandardV2")
}

// SameReference reports whether the references at a path are the same before and after.
func SameReference(c *behaviour.Call, path string) bool {
	return behaviour.RefID(c.Old, path).Equal(behaviour.RefID(c.Doc, path))
}

// JoinIDs joins ids by commas, as Azure's messages do.
func JoinIDs(ids []azure.ID) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = string(id)
	}
	return strings.Join(texts, ",")
}

func Array(texts []string) []any {
	array := make([]any, len(texts))
	for i, t := range texts {
		array[i] = t
	}
	return array
}

// ChoosePrimary makes the first IP configuration primary if none is, and refuses two primary configurations.
func ChoosePrimary(c *behaviour.Call) error {
	const path = "properties.primary"
	var primary behaviour.Object
	configurations := behaviour.Objects(c.Doc, "properties.ipConfigurations")
	for _, configuration := range configurations {
		if !behaviour.Bool(configuration, path) {
			behaviour.Set(configuration, path, false)
			continue
		}
		if primary != nil {
			return behaviour.Invalid("NetworkInterfaceHasMultiplePrimaryIpConfigurations",
				"Network interface %s has more than one primary IP configuration: %s and %s.", c.ID, behaviour.Text(primary, "name"),
				behaviour.Text(configuration, "name"))
		}
		primary = configuration
	}
	if primary == nil && len(configurations) > 0 {
		behaviour.Set(configurations[0], path, true)
	}
	return nil
}
