package network

import (
	"regexp"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
	"kaz/internal/emulator/catalog"
)

// malformed is the provider's refusal of a request that it cannot make sense of.
// It also stands for refusals whose own code is in no source we have.
func malformed(code, format string, args ...any) error {
	return behaviour.Invalid("InvalidRequestFormat", "Cannot parse the request.").With(code, format, args...)
}

// nameForm is what Azure allows as the name of a network resource.
var nameForm = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]{0,78}[A-Za-z0-9_])?$`)

func checkName(id azure.ID) error {
	if nameForm.MatchString(id.Name()) {
		return nil
	}
	return behaviour.Invalid("InvalidResourceName", "Resource name %s is invalid. The name can be up to 80 characters long. It must begin with a word character, and it must end with a word character or with '_'. The name may contain word characters or '.', '-', '_'.", id.Name())
}

// choose writes a value in Azure's spelling, or the default where there is none.
// A value that is not allowed is refused.
func choose(c *behaviour.Call, path, otherwise string, allowed ...string) error {
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
	return malformed("InvalidJson", "Error converting value %q of %s of resource %s. Allowed values are: %s.", text, path, c.ID, strings.Join(allowed, ", "))
}

// required is choose for what has no default.
func required(c *behaviour.Call, path string, allowed ...string) error {
	if behaviour.At(c.Doc, path) == nil {
		return missing(c, path)
	}
	return choose(c, path, "", allowed...)
}

func missing(c *behaviour.Call, path string) error {
	return malformed("MissingRequiredProperty", "Resource %s has no value for the required property %s.", c.ID, path)
}

// number checks a whole number and writes it as one; there is no default when
// otherwise is negative.
func number(c *behaviour.Call, path string, otherwise, least, most int) error {
	if behaviour.At(c.Doc, path) == nil {
		if otherwise >= 0 {
			behaviour.Set(c.Doc, path, otherwise)
		}
		return nil
	}
	n, ok := behaviour.Int(c.Doc, path)
	if !ok || n < least || n > most {
		return malformed("InvalidPropertyValue", "Value %v of %s of resource %s is invalid. It must be a whole number from %d to %d.", behaviour.At(c.Doc, path), path, c.ID, least, most)
	}
	behaviour.Set(c.Doc, path, n)
	return nil
}

// flag checks a boolean and writes it as one.
func flag(c *behaviour.Call, path string, otherwise bool) error {
	switch v := behaviour.At(c.Doc, path).(type) {
	case nil:
		behaviour.Set(c.Doc, path, otherwise)
	case bool:
	case string:
		if !strings.EqualFold(v, "true") && !strings.EqualFold(v, "false") {
			return malformed("InvalidJson", "Could not convert string to boolean: %s. Path '%s' of resource %s.", v, path, c.ID)
		}
		behaviour.Set(c.Doc, path, strings.EqualFold(v, "true"))
	default:
		return malformed("InvalidJson", "Path '%s' of resource %s must be a boolean.", path, c.ID)
	}
	return nil
}

// flags is flag for several properties that are false by default.
func flags(c *behaviour.Call, paths ...string) error {
	for _, path := range paths {
		if err := flag(c, path, false); err != nil {
			return err
		}
	}
	return nil
}

// list makes sure that there is an array at each path.
func list(c *behaviour.Call, paths ...string) error {
	for _, path := range paths {
		switch behaviour.At(c.Doc, path).(type) {
		case nil:
			behaviour.Set(c.Doc, path, []any{})
		case []any:
		default:
			return malformed("InvalidJson", "Path '%s' of resource %s must be an array.", path, c.ID)
		}
	}
	return nil
}

// reference checks that a {"id": ...} is there and names a resource of the type.
func reference(c *behaviour.Call, path, fullType string) (azure.ID, error) {
	id := behaviour.RefID(c.Doc, path)
	if id == "" {
		return "", malformed("MissingJsonReferenceId", "Value for reference id is missing. Path %s of resource %s.", path, c.ID)
	}
	if _, err := azure.ParseID(string(id)); err != nil || !id.Is(fullType) {
		return "", malformed("InvalidJsonReferenceId", "Value for reference id '%s' is invalid. Path %s of resource %s must be the id of a %s.", id, path, c.ID, fullType)
	}
	return id, nil
}

// first runs checks until one fails.
func first(checks ...func() error) error {
	for _, check := range checks {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// zones checks the document's availability zones.
func zones(c *behaviour.Call) error {
	asked := behaviour.Texts(c.Doc, "zones")
	if len(asked) == 0 {
		delete(c.Doc, "zones")
		return nil
	}
	for _, doc := range []behaviour.Object{c.Doc, c.Parent} {
		if behaviour.At(doc, "extendedLocation") != nil {
			return malformed("AvailabilityZonesNotSupportedInExtendedLocation", "Resource %s cannot have zones: it is in extended location %s.", c.ID, behaviour.Text(doc, "extendedLocation.name"))
		}
	}
	region, _ := catalog.FindRegion(c.Location())
	if len(region.Zones) == 0 {
		return behaviour.Invalid("LocationNotSupportAvailabilityZones", "Resource %s cannot have zones: the location '%s' does not support availability zones.", c.ID, c.Location())
	}
	for _, zone := range asked {
		if !slices.Contains(region.Zones, zone) {
			return behaviour.Invalid("InvalidAvailabilityZone", "Zone '%s' of resource %s is invalid. The zones of location '%s' are: %s.", zone, c.ID, region.Name, strings.Join(region.Zones, ", "))
		}
	}
	return nil
}

// tooMany refuses more of something than Azure's limit.
func tooMany(c *behaviour.Call, code, what string, have, limit int) error {
	if have <= limit {
		return nil
	}
	return behaviour.Invalid(code, "Resource %s has %d %s. The limit is %d.", c.ID, have, what, limit)
}

// standard reports whether a SKU is one of those with zones and static addresses.
func standard(doc behaviour.Object) bool {
	sku := behaviour.Text(doc, "sku.name")
	return strings.EqualFold(sku, "Standard") || strings.EqualFold(sku, "StandardV2")
}

// sameRef reports whether the references at a path are the same before and after.
func sameRef(c *behaviour.Call, path string) bool {
	return behaviour.RefID(c.Old, path).Equal(behaviour.RefID(c.Doc, path))
}

// joined writes ids as the messages of Azure list them.
func joined(ids []azure.ID) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = string(id)
	}
	return strings.Join(texts, ",")
}
