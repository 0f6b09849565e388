// Package odata has what the JSON of OData consists of: typed values, objects with members in an order, and levels of metadata. Layer L2.
package odata

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
)

// Type is the type of a value.
type Type string

// The types of values.
const (
	String   Type = "Edm.String"
	Boolean  Type = "Edm.Boolean"
	Int32    Type = "Edm.Int32"
	Int64    Type = "Edm.Int64"
	Double   Type = "Edm.Double"
	DateTime Type = "Edm.DateTime"
	GUID     Type = "Edm.Guid"
	Binary   Type = "Edm.Binary"
)

// Value is a value with a type. The zero Value has no type, and stands for null.
type Value struct {
	Type Type
	data any // string for texts and GUIDs, bool, int64 for both integers, float64, time.Time, or []byte
}

// StringOf returns a text as a value.
func StringOf(text string) Value { return Value{String, text} }

// TimeOf returns a time as a value.
func TimeOf(at time.Time) Value { return Value{DateTime, at.UTC()} }

// BooleanOf returns a truth as a value.
func BooleanOf(b bool) Value { return Value{Boolean, b} }

// Tick is the shortest time that values tell apart.
const Tick = 100 * time.Nanosecond

// timeForm has the seven digits of ticks.
const timeForm = "2006-01-02T15:04:05.0000000Z"

var guidForm = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// Parse reads a value of a type as JSON and URLs spell it. [Value.Text] spells it in the same way.
func Parse(t Type, text string) (Value, error) {
	data, err := parse(t, text)
	if err != nil {
		return Value{}, fmt.Errorf("%q is no value of the type %s", text, t)
	}
	return Value{t, data}, nil
}

func parse(t Type, text string) (any, error) {
	switch t {
	case String:
		return text, nil
	case Boolean:
		return parseBoolean(text)
	case Int32:
		return strconv.ParseInt(text, 10, 32)
	case Int64:
		return strconv.ParseInt(text, 10, 64)
	case Double:
		return parseDouble(text)
	case DateTime:
		return parseTime(text)
	case GUID:
		if !guidForm.MatchString(text) {
			return nil, strconv.ErrSyntax
		}
		return strings.ToLower(text), nil
	case Binary:
		return base64.StdEncoding.DecodeString(text)
	}
	return nil, fmt.Errorf("there is no type %s", t)
}

func parseBoolean(text string) (bool, error) {
	truth := strings.EqualFold(text, "true")
	if !truth && !strings.EqualFold(text, "false") {
		return false, strconv.ErrSyntax
	}
	return truth, nil
}

// parseDouble reads a number, with the names that .NET has for those that JSON has not.
func parseDouble(text string) (float64, error) {
	switch text {
	case "NaN":
		return math.NaN(), nil
	case "Infinity", "INF":
		return math.Inf(1), nil
	case "-Infinity", "-INF":
		return math.Inf(-1), nil
	}
	if strings.ContainsAny(text, "xXpP_nN") { // that only Go knows
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseFloat(text, 64)
}

// The years of the times that tables keep.
const (
	firstYear = 1601
	lastYear  = 9999
)

// parseTime reads a time. One without a zone is of UTC.
func parseTime(text string) (at time.Time, err error) {
	for _, form := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04Z", "2006-01-02T15:04", "2006-01-02"} {
		if at, err = time.Parse(form, text); err == nil {
			break
		}
	}
	at = at.UTC()
	if err == nil && (at.Year() < firstYear || at.Year() > lastYear) {
		err = fmt.Errorf("the years from %d to %d are allowed", firstYear, lastYear)
	}
	return at.Truncate(Tick), err
}

// HexOf reads bytes as URLs spell them.
func HexOf(text string) (Value, error) {
	content, err := hex.DecodeString(text)
	if err != nil {
		return Value{}, fmt.Errorf("%q is not hexadecimal", text)
	}
	return Value{Binary, content}, nil
}

// Text returns a value as [Parse] reads it.
func (v Value) Text() string {
	switch data := v.data.(type) {
	case string:
		return data
	case bool:
		return strconv.FormatBool(data)
	case int64:
		return strconv.FormatInt(data, 10)
	case float64:
		return doubleText(data)
	case time.Time:
		return data.Format(timeForm)
	case []byte:
		return base64.StdEncoding.EncodeToString(data)
	}
	return ""
}

func doubleText(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	case math.IsNaN(f):
		return "NaN"
	}
	const small, large = 1e-5, 1e15
	if size := math.Abs(f); size != 0 && (size < small || size >= large) {
		return strconv.FormatFloat(f, 'E', -1, 64)
	}
	text := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0" // which tells it from an integer
	}
	return text
}

// Bool reports whether a value is the truth.
func (v Value) Bool() bool { return v.data == true }

// Positive returns an integer that is at least 1, and whether a value is one.
func (v Value) Positive() (int, bool) {
	n, _ := v.data.(int64)
	return int(n), n > 0
}

// Size is how many bytes a value counts for the limits of an entity.
func (v Value) Size() int {
	const counter, short, long, longest = 4, 4, 8, 16
	switch v.Type {
	case String:
		return counter + Width(v.Text())
	case Binary:
		content, _ := v.data.([]byte)
		return counter + len(content)
	case Boolean:
		return 1
	case Int32:
		return short
	case GUID:
		return longest
	}
	return long
}

// Width is how many bytes a text has in the encoding in which Azure counts it, UTF-16.
func Width(text string) int {
	const unit = 2
	return unit * len(utf16.Encode([]rune(text)))
}

// Compare returns the order of two values. Values of different types have none, except for numbers.
func Compare(a, b Value) (order int, comparable bool) {
	if x, ok := a.number(); ok {
		y, ok := b.number()
		if i, whole := a.data.(int64); whole {
			if j, both := b.data.(int64); both {
				return cmp.Compare(i, j), true
			}
		}
		return cmp.Compare(x, y), ok && !math.IsNaN(x) && !math.IsNaN(y)
	}
	if a.Type != b.Type {
		return 0, false
	}
	switch x := a.data.(type) {
	case string:
		return strings.Compare(x, b.Text()), true
	case bool:
		return strings.Compare(a.Text(), b.Text()), true // false is before true
	case time.Time:
		y, ok := b.data.(time.Time)
		return x.Compare(y), ok
	case []byte:
		y, ok := b.data.([]byte)
		return bytes.Compare(x, y), ok
	}
	return 0, false
}

func (v Value) number() (float64, bool) {
	switch data := v.data.(type) {
	case int64:
		return float64(data), true
	case float64:
		return data, true
	}
	return 0, false
}
