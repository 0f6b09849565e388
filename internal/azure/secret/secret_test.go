package secret_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"text/template"

	"sigs.k8s.io/yaml"

	"kaz/internal/azure/secret"
)

// holder has a secret wherever a struct can have one.
type holder struct {
	Open   secret.Text
	hidden secret.Text
	Inside struct{ deep secret.Text }
	inside *inner
	Many   []secret.Text
	Of     map[string]secret.Text
	by     map[secret.Text]bool
	any    any
	array  [1]secret.Text
	errs   error
}

type inner struct{ text secret.Text }

func newHolder(s secret.Text) holder {
	h := holder{Open: s, hidden: s, inside: &inner{s}, Many: []secret.Text{s}, Of: map[string]secret.Text{"a": s}, by: map[secret.Text]bool{s: true},
		any: s, array: [1]secret.Text{s}, errs: fmt.Errorf("with %v: %w", s, errors.New("cause"))}
	h.Inside.deep = s
	return h
}

// values returns a secret in all places.
func values(s secret.Text) map[string]any {
	h := newHolder(s)
	return map[string]any{
		"alone": s, "pointer": &s, "holder": h, "pointer to holder": &h, "list": []holder{h}, "map": map[string]holder{"a": h},
		"key": map[secret.Text]int{s: 1}, "unexported": struct{ s secret.Text }{s}, "interface": []any{s, &s, h, &h},
	}
}

// shows returns why an output shows a text, "" if it does not.
func shows(output, text string) string {
	for how, form := range map[string]string{
		"plain": text, "%x": fmt.Sprintf("%x", text), "%X": fmt.Sprintf("%X", text), "% x": fmt.Sprintf("% x", text),
		"%d": strings.Trim(fmt.Sprintf("%d", []byte(text)), "[]"), "base64": base64.StdEncoding.EncodeToString([]byte(text)),
		"%U": strings.Trim(fmt.Sprintf("%U", []rune(text)), "[]"), "%+q": strings.Trim(fmt.Sprintf("%+q", text), `"`),
	} {
		if strings.Contains(output, form) {
			return how
		}
	}
	return ""
}

const text = "correct horse battery"

// TestVerbs checks every verb of fmt with every flag, in every place.
func TestVerbs(t *testing.T) {
	for where, value := range values(secret.New(text)) {
		for _, verb := range "vTtbcdoOqxXUeEfFgGspw" {
			for _, flags := range []string{"", "+", "#", "-", " ", "0", "+#", "40", ".100", "# "} {
				format := "%" + flags + string(verb)
				output := fmt.Sprintf(format, value)
				if how := shows(output, text); how != "" {
					t.Errorf("%s of %s shows it as %s: %s", format, where, how, output)
				}
			}
		}
		if how := shows(fmt.Sprint(value)+fmt.Sprintln(value)+string(fmt.Append(nil, value))+fmt.Errorf("%w %v", errors.New("x"), value).Error(), text); how != "" {
			t.Errorf("Sprint of %s shows it as %s", where, how)
		}
	}
}

// TestEncoders checks every encoder, in every place. An encoder may refuse a value.
func TestEncoders(t *testing.T) {
	encoders := map[string]func(any) (string, error){
		"json": func(v any) (string, error) { b, err := json.Marshal(v); return string(b), err },
		"yaml": func(v any) (string, error) { b, err := yaml.Marshal(v); return string(b), err },
		"xml":  func(v any) (string, error) { b, err := xml.Marshal(v); return string(b), err },
		"gob": func(v any) (string, error) {
			var b bytes.Buffer
			err := gob.NewEncoder(&b).Encode(v)
			return b.String(), err
		},
		"binary": func(v any) (string, error) {
			var b bytes.Buffer
			err := binary.Write(&b, binary.LittleEndian, v)
			return b.String(), err
		},
		"template": func(v any) (string, error) {
			var b strings.Builder
			err := template.Must(template.New("").Parse(`{{.}} {{printf "%s %v %d %q" . . . .}} {{print .}} {{. | js}}`)).Execute(&b, v)
			return b.String(), err
		},
		"slog text": logged(func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) }),
		"slog json": logged(func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) }),
	}
	for where, value := range values(secret.New(text)) {
		for name, encode := range encoders {
			output, err := encode(value)
			if how := shows(output+fmt.Sprint(err), text); how != "" {
				t.Errorf("%s of %s shows it as %s: %q", name, where, how, output)
			}
		}
	}
	for _, name := range []string{"json", "yaml", "xml", "gob", "template", "slog text", "slog json"} {
		if output, err := encoders[name](secret.New(text)); err != nil || !strings.Contains(output, secret.Redacted) {
			t.Errorf("%s: %q, %v: want %s", name, output, err, secret.Redacted)
		}
	}
}

// logged logs a value with a handler, as attribute, in a group and as text.
func logged(handler func(*bytes.Buffer) slog.Handler) func(any) (string, error) {
	return func(v any) (string, error) {
		var b bytes.Buffer
		log := slog.New(handler(&b)).With("with", v)
		log.Info("logged", "message", fmt.Sprint(v), "value", v, slog.Group("group", "inside", v, "pointer", &v), "list", []any{v})
		return b.String(), nil
	}
}

// TestValue checks that a secret can be compared and revealed.
func TestValue(t *testing.T) {
	a, b := secret.New(text), secret.New(strings.Clone(text))
	if a != b || a == secret.New("other") || a.Reveal() != text || a.IsZero() || !reflect.DeepEqual(newHolder(a).Many, newHolder(b).Many) {
		t.Error("equal texts differ")
	}
	var empty secret.Text
	if zero := secret.New(""); zero != empty || !zero.IsZero() || zero.Reveal() != "" || zero.String() != "" {
		t.Errorf("the empty text: %v", zero)
	}
}

// TestDecoded checks that decoders read a secret, and that none reads what an encoder wrote.
func TestDecoded(t *testing.T) {
	var h struct {
		S secret.Text `json:"s"`
	}
	if err := json.Unmarshal([]byte(`{"s":"`+text+`"}`), &h); err != nil || h.S.Reveal() != text {
		t.Errorf("%v: another text", err)
	}
	output, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(output, &h); err == nil || h.S.Reveal() != text {
		t.Errorf("%s is read: %v", output, err)
	}
	for _, other := range []string{`{"s":["` + text + `"]}`, `{"s":{"a":"` + text + `"}}`, `{"s":20240101}`} {
		if err := json.Unmarshal([]byte(other), &h); err == nil || shows(err.Error(), text) != "" || strings.Contains(err.Error(), "20240101") {
			t.Errorf("%v", err)
		}
	}
}

// FuzzText prints any text in an unexported field.
func FuzzText(f *testing.F) {
	f.Add("correct horse battery")
	f.Add("\x00\xff%d%!s(PANIC=")
	f.Fuzz(func(t *testing.T, text string) {
		s := secret.New(text)
		if s.Reveal() != text {
			t.Errorf("%q became %q", text, s.Reveal())
		}
		const shortest = 24 // shorter texts can be a part of an address
		for _, verb := range []string{"%v", "%+v", "%#v", "%d", "%s", "%q", "%x"} {
			output, empty := fmt.Sprintf(verb, newHolder(s)), fmt.Sprintf(verb, holder{})
			if len(text) >= shortest && strings.Contains(output, text) && !strings.Contains(empty, text) {
				t.Errorf("%s printed: %s", verb, output)
			}
		}
	})
}
