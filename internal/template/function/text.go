package function

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"kaz/internal/azure/short"
)

// texts has the functions of strings. Positions and lengths count characters. Where the
// language compares without regard to case, the functions do.
var texts = map[string]Function{
	"tolower":        ofText(func(s string) any { return strings.ToLower(s) }),
	"toupper":        ofText(func(s string) any { return strings.ToUpper(s) }),
	"trim":           ofText(func(s string) any { return strings.TrimSpace(s) }),
	"base64":         ofText(func(s string) any { return base64.StdEncoding.EncodeToString([]byte(s)) }),
	"base64tostring": {Least: 1, Most: 1, Do: fromBase64},
	"base64tojson":   {Least: 1, Most: 1, Do: jsonFromBase64},
	"json":           {Least: 1, Most: 1, Do: fromJSON},
	"string":         {Least: 1, Most: 1, Do: toText},
	"startswith":     ofTexts(func(s, part string) any { return strings.HasPrefix(strings.ToLower(s), strings.ToLower(part)) }),
	"endswith":       ofTexts(func(s, part string) any { return strings.HasSuffix(strings.ToLower(s), strings.ToLower(part)) }),
	"replace":        {Least: 3, Most: 3, Do: replace},
	"split":          {Least: 2, Most: 2, Do: split},
	"join":           {Least: 2, Most: 2, Do: join},
	"substring":      {Least: 2, Most: 3, Do: substring},
	"padleft":        {Least: 2, Most: 3, Do: padLeft},
	"format":         {Least: 2, Most: -1, Do: format},
	"uri":            ofTexts(uri),
	"uricomponent":   ofText(func(s string) any { return escape(s) }),
	"uricomponenttostring": {Least: 1, Most: 1, Do: func(args []any) (any, error) {
		s, ok := args[0].(string)
		if !ok {
			return nil, Expects("one string")
		}
		return unescape(s)
	}},
	"datauri": ofText(func(s string) any {
		return "data:text/plain;charset=utf8;base64," + base64.StdEncoding.EncodeToString([]byte(s))
	}),
	"datauritostring": {Least: 1, Most: 1, Do: fromDataURI},
	"guid":            {Least: 1, Most: -1, Do: func(args []any) (any, error) { return hashed(args, guid) }},
	"uniquestring":    {Least: 1, Most: -1, Do: func(args []any) (any, error) { return hashed(args, unique) }},
}

func fromBase64(args []any) (any, error) {
	s, _ := args[0].(string)
	text, err := base64.StdEncoding.DecodeString(s)
	if err != nil || s == "" && args[0] != "" {
		return nil, Expects("a string in base64")
	}
	return string(text), nil
}

func jsonFromBase64(args []any) (any, error) {
	text, err := fromBase64(args)
	if err != nil {
		return nil, err
	}
	return fromJSON([]any{text})
}

// fromJSON reads JSON. Strings in single quotes, which Azure takes too, are understood
// where there are no double quotes.
func fromJSON(args []any) (any, error) {
	s, ok := args[0].(string)
	if !ok {
		return nil, Expects("one string")
	}
	var value any
	err := json.Unmarshal([]byte(s), &value)
	if err != nil && !strings.Contains(s, `"`) {
		err = json.Unmarshal([]byte(strings.ReplaceAll(s, "'", `"`)), &value)
	}
	if err != nil {
		return nil, Expects("a string that is JSON")
	}
	return value, nil
}

func toText(args []any) (any, error) {
	if s, ok := Plain(args[0]); ok {
		return s, nil
	}
	return compact(args[0])
}

// Plain is a string, a number or a boolean as a string, and whether a value is one.
func Plain(value any) (string, bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	case bool:
		if v {
			return "True", true
		}
		return "False", true
	}
	return "", false
}

// compact is a value as JSON without spaces.
func compact(value any) (string, error) {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return "", err
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

func replace(args []any) (any, error) {
	s, ok := AllText(args)
	if !ok || s[1] == "" {
		return nil, Expects("three strings, of which the second is not empty")
	}
	if len(s[0])+strings.Count(s[0], s[1])*len(s[2]) > MostSize {
		return nil, ErrTooMuch
	}
	return strings.ReplaceAll(s[0], s[1], s[2]), nil
}

// split is split(string, delimiter or array of delimiters).
func split(args []any) (any, error) {
	s, ok := args[0].(string)
	delimiters, several := args[1].([]any)
	if !several {
		delimiters = args[1:]
	}
	by, texts := AllText(delimiters)
	if !ok || !texts {
		return nil, Expects("a string, and a string or an array of strings")
	}
	if len(by)*len(s) > MostSize {
		return nil, ErrTooMuch
	}
	return splitText(s, by), nil
}

// splitText splits a text at delimiters. It searches each of them through the text once: next is where each is found next.
func splitText(s string, by []string) []any {
	parts, begin := []any{}, 0
	next := make([]int, len(by))
	for i := range next {
		next[i] = -1
	}
	for {
		at, width := len(s), 0
		for i, d := range by {
			if d != "" && next[i] < begin {
				next[i] = len(s)
				if found := strings.Index(s[begin:], d); found >= 0 {
					next[i] = begin + found
				}
			}
			if d != "" && next[i] < at {
				at, width = next[i], len(d)
			}
		}
		if at == len(s) {
			return append(parts, s[begin:])
		}
		parts, begin = append(parts, s[begin:at]), at+width
	}
}

func join(args []any) (any, error) {
	array, ok := args[0].([]any)
	delimiter, also := args[1].(string)
	if !ok || !also {
		return nil, Expects("an array and a string")
	}
	if SizeOf(array)+len(array)*len(delimiter) > MostSize {
		return nil, ErrTooMuch
	}
	parts := make([]string, len(array))
	for i, x := range array {
		s, err := toText([]any{x})
		if err != nil {
			return nil, err
		}
		parts[i], _ = s.(string)
	}
	return strings.Join(parts, delimiter), nil
}

// substring is substring(string, start, [length]).
func substring(args []any) (any, error) {
	s, ok := args[0].(string)
	from, also := Whole(args[1])
	runes := []rune(s)
	count, last := int64(len(runes))-from, true
	if len(args) > 2 {
		count, last = Whole(args[2])
	}
	if !ok || !also || !last {
		return nil, Expects("a string and one or two whole numbers")
	}
	if from < 0 || count < 0 || from > int64(len(runes)) || count > int64(len(runes))-from {
		return nil, errors.New("the index and length parameters of the function 'substring' must refer to a location within the string")
	}
	return string(runes[from : from+count]), nil
}

// padLeft is padLeft(string or number, length, [character]).
func padLeft(args []any) (any, error) {
	s, ok := Plain(args[0])
	width, also := Whole(args[1])
	pad := any(" ")
	if len(args) > 2 {
		pad = args[2]
	}
	with, text := pad.(string)
	if !ok || !also || !text || utf8.RuneCountInString(with) != 1 {
		return nil, Expects("a string or a number, a whole number and one character")
	}
	if width > MostSize {
		return nil, ErrTooMuch
	}
	return strings.Repeat(with, max(0, int(width)-utf8.RuneCountInString(s))) + s, nil
}

// format is format(string, values...): {0}, {1,10}, {2:N0}, as .NET has them.
func format(args []any) (any, error) {
	s, ok := args[0].(string)
	if !ok {
		return nil, Expects("a format string and values")
	}
	var b strings.Builder
	for s != "" {
		at := strings.IndexAny(s, "{}")
		if at < 0 {
			b.WriteString(s)
			break
		}
		b.WriteString(s[:at])
		if strings.HasPrefix(s[at:], "{{") || strings.HasPrefix(s[at:], "}}") {
			b.WriteByte(s[at])
			s = s[at+2:]
			continue
		}
		end := strings.IndexByte(s[at:], '}')
		if s[at] == '}' || end < 0 {
			return nil, errors.New("the format string of the function 'format' is not valid")
		}
		text, err := placeholder(s[at+1:at+end], args[1:])
		if err != nil {
			return nil, err
		}
		if b.WriteString(text); b.Len() > MostSize {
			return nil, ErrTooMuch
		}
		s = s[at+end+1:]
	}
	return b.String(), nil
}

// placeholder formats a value: index[,width][:style].
func placeholder(spec string, values []any) (string, error) {
	place, style, _ := strings.Cut(spec, ":")
	index, wide, aligned := strings.Cut(place, ",")
	i, err := strconv.Atoi(strings.TrimSpace(index))
	if err != nil || i < 0 || i >= len(values) {
		return "", short.Errorf("the placeholder '{%s}' of the function 'format' has no argument", spec)
	}
	text, err := styled(style, values[i])
	if err != nil || !aligned {
		return text, err
	}
	width, err := strconv.Atoi(strings.TrimSpace(wide))
	if err != nil || width > MostSize || width < -MostSize {
		return "", short.Errorf("the placeholder '{%s}' of the function 'format' has no valid width", spec)
	}
	return fmt.Sprintf("%*s", width, text), nil
}

// styled formats a value in one of the standard styles of whole numbers: D and N, each
// with a count of digits, and X.
func styled(style string, value any) (string, error) {
	if style == "" {
		if value == nil {
			return "", nil
		}
		text, err := toText([]any{value})
		s, _ := text.(string)
		return s, err
	}
	n, ok := Whole(value)
	digits, err := strconv.Atoi(style[1:])
	if style[1:] == "" {
		digits, err = map[byte]int{'N': 2}[style[0]&^0x20], nil
	}
	if ok && err == nil && digits >= 0 && digits < 100 {
		switch style[0] &^ 0x20 {
		case 'D':
			return zeros(strconv.FormatInt(n, 10), digits), nil
		case 'X':
			return zeros(fmt.Sprintf("%"+style[:1], uint64(n)), digits), nil
		case 'N':
			text := thousands(strconv.FormatInt(n, 10))
			if digits > 0 {
				text += "." + strings.Repeat("0", digits)
			}
			return text, nil
		}
	}
	return "", short.Errorf("the style '%s' of the function 'format' is not supported for this value", style)
}

func zeros(digits string, width int) string {
	sign := ""
	if rest, negative := strings.CutPrefix(digits, "-"); negative {
		sign, digits = "-", rest
	}
	return sign + strings.Repeat("0", max(0, width-len(digits))) + digits
}

func thousands(digits string) string {
	const group = 3
	first := strings.TrimPrefix(digits, "-")
	for i := len(first) - group; i > 0; i -= group {
		first = first[:i] + "," + first[i:]
	}
	if strings.HasPrefix(digits, "-") {
		return "-" + first
	}
	return first
}

// uri is uri(base, relative): a base that does not end in a slash loses what is behind
// its last one.
func uri(base, relative string) any {
	scheme := 0
	if i := strings.Index(base, "://"); i >= 0 {
		scheme = i + len("://")
	}
	if last := strings.LastIndexByte(base[scheme:], '/'); last >= 0 {
		base = base[:scheme+last+1]
	} else {
		base += "/"
	}
	return base + strings.TrimPrefix(relative, "/")
}

const unreserved = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~"

func escape(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if strings.IndexByte(unreserved, c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// unescape decodes escapes. A malformed escape stays as it is.
func unescape(s string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(c))
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	if !utf8.ValidString(b.String()) {
		return "", Expects("an escaped string in UTF-8")
	}
	return b.String(), nil
}

func fromDataURI(args []any) (any, error) {
	s, _ := args[0].(string)
	head, data, ok := strings.Cut(strings.TrimPrefix(s, "data:"), ",")
	switch {
	case !ok || !strings.HasPrefix(s, "data:"):
		return nil, Expects("a data URI")
	case strings.HasSuffix(head, ";base64"):
		return fromBase64([]any{data})
	}
	return unescape(data)
}

// hashed computes a hash of strings, which are joined for it.
func hashed(args []any, f func(string) string) (any, error) {
	s, ok := AllText(args)
	if !ok {
		return nil, Expects("strings")
	}
	return f(strings.Join(s, "-")), nil
}
