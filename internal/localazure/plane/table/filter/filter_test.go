package filter_test

import (
	"strings"
	"testing"
	"time"

	"kaz/internal/localazure/plane/table/filter"
	"kaz/internal/localazure/plane/table/odata"
)

// properties are those of an entity.
func properties(t testing.TB) func(name string) odata.Value {
	t.Helper()
	values := map[string]odata.Value{"City": odata.StringOf("Oslo's"), "Sold": odata.BooleanOf(true),
		"At": odata.TimeOf(time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC))}
	for name, v := range map[string][2]string{"Price": {"Edm.Int32", "12"}, "Long": {"Edm.Int64", "9007199254740993"},
		"Weight": {"Edm.Double", "1.5"}, "None": {"Edm.Double", "NaN"}, "Id": {"Edm.Guid", "4185404A-5818-48c3-b9be-f217df0dba6f"},
		"Raw": {"Edm.Binary", "AP8="}} {
		parsed, err := odata.Parse(odata.Type(v[0]), v[1])
		if err != nil {
			t.Fatal(err)
		}
		values[name] = parsed
	}
	return func(name string) odata.Value { return values[name] }
}

func TestParse(t *testing.T) {
	entity := properties(t)
	for text, want := range map[string]bool{
		"":                                     true,
		"City eq 'Oslo''s'":                    true,
		"'Oslo''s' eq City":                    true,
		"City ne 'Oslo''s'":                    false,
		"City gt 'Os' and City lt 'Ot'":        true,
		"Price eq 12":                          true,
		"Price eq 12L":                         true,
		"Price lt 12.5":                        true,
		"Price eq -12":                         false,
		"Long eq 9007199254740993L":            true,
		"Long eq 9007199254740992L":            false,
		"Weight eq 1.5":                        true,
		"Weight ge 15e-1":                      true,
		"None eq None":                         false,
		"Weight lt INF":                        true,
		"Weight gt -INF":                       true,
		"Sold":                                 true,
		"Sold eq false":                        false,
		"not Sold":                             false,
		"not (Price gt 100 or City eq 'x')":    true,
		"Absent eq 1":                          false,
		"Absent ne 1":                          false,
		"not (Absent eq 1)":                    true,
		"City eq 12":                           false, // of another type
		"At gt datetime'2025-01-02T03:04:04Z'": true,
		"At eq datetime'2025-01-02T04:04:05+01:00'":        true,
		"Id eq guid'4185404a-5818-48c3-b9be-f217df0dba6f'": true,
		"Raw eq X'00ff'":      true,
		"Raw eq binary'00FF'": true,
		"Raw gt X'00'":        true,
		"Price gt 1 or Price gt 100 and Price lt 0":   true, // and binds more
		"(Price gt 1 or Price gt 100) and Price lt 0": false,
		"((((Sold))))": true,
	} {
		f, err := filter.Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := f.Matches(entity); got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"City eq":                            "a property or a constant",
		"City eq 'x":                         "'x",
		"City eq 'x' 'y'":                    "the end",
		"City eq 'x' xor Sold":               "the end",
		"(City eq 'x'":                       "a closing parenthesis",
		"and":                                "a property or a constant",
		"City eq guid'x'":                    "Edm.Guid",
		"City eq time'x'":                    "datetime, guid, X and binary",
		"City eq X'0'":                       "hexadecimal",
		"Price eq 9999999999999999999999":    "Edm.Int64",
		"City = 'x'":                         "= 'x'",
		strings.Repeat("(", 200) + "Sold":    "100 nested",
		strings.Repeat("not ", 200) + "Sold": "100 nested",
		strings.Repeat("Sold or ", 5000) + "Sold": "32768",
	} {
		if _, err := filter.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: got %v, want an error with %q", text, err, want)
		}
	}
}

// Any text is a filter or an error, and a filter can be asked.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"City eq 'Oslo''s' and not (Price gt 12L or Sold)", "At le datetime'2025-01-02T03:04:04Z'", "X'00'", "-1.5e3",
		"(((", "not not a", "'", "guid'", "1L2", "INF", "é eq 'ü'"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		found, err := filter.Parse(text)
		if err == nil {
			found.Matches(properties(t))
		}
	})
}
