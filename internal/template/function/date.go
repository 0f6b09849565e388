package function

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"kaz/internal/azure/short"
)

// dates has the functions of time.
var dates = map[string]Function{
	"datetimeadd":       {Least: 2, Most: 3, Do: dateTimeAdd},
	"datetimetoepoch":   {Least: 1, Most: 1, Do: dateTimeToEpoch},
	"datetimefromepoch": {Least: 1, Most: 1, Do: dateTimeFromEpoch},
}

// timeForms are the spellings of times that are read.
var timeForms = []string{time.RFC3339Nano, "2006-01-02 15:04:05Z07:00", "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02",
	"20060102T150405Z", "1/2/2006 3:04:05 PM"}

func timeOf(value any) (time.Time, error) {
	text, _ := value.(string)
	for _, form := range timeForms {
		if at, err := time.Parse(form, text); err == nil {
			return at.UTC(), nil
		}
	}
	return time.Time{}, Expects("a time such as 2025-01-31T12:00:00Z")
}

var durationForm = regexp.MustCompile(`^(-?)P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?$`)

// durationOf reads a duration. A year has 365 days and a month has 30, as Azure documents it.
func durationOf(value any) (time.Duration, error) {
	const day = 24 * time.Hour
	text, _ := value.(string)
	m := durationForm.FindStringSubmatch(text)
	if m == nil || strings.HasSuffix(text, "P") || strings.HasSuffix(text, "T") {
		return 0, Expects("a time and a duration such as P1DT12H")
	}
	var sum time.Duration
	for i, unit := range []time.Duration{365 * day, 30 * day, 7 * day, day, time.Hour, time.Minute, time.Second} {
		const most = 1 << 20 // keeps the sum small
		n, err := strconv.Atoi("0" + m[i+2])
		if err != nil || n > most || time.Duration(n) > (1<<62)/unit {
			return 0, Expects("a shorter duration")
		}
		sum += time.Duration(n) * unit
	}
	if m[1] != "" {
		sum = -sum
	}
	return sum, nil
}

// dateTimeAdd is dateTimeAdd(time, duration, [format]).
func dateTimeAdd(args []any) (any, error) {
	at, err := timeOf(args[0])
	if err != nil {
		return nil, err
	}
	d, err := durationOf(args[1])
	if err != nil {
		return nil, err
	}
	form := any("yyyy-MM-ddTHH:mm:ssZ")
	if len(args) > 2 {
		form = args[2]
	}
	return FormatTime(at.Add(d), form)
}

func dateTimeToEpoch(args []any) (any, error) {
	at, err := timeOf(args[0])
	return Number(at.Unix()), err
}

func dateTimeFromEpoch(args []any) (any, error) {
	n, ok := Whole(args[0])
	if !ok {
		return nil, Expects("seconds since 1970 as a whole number")
	}
	return time.Unix(n, 0).UTC().Format("2006-01-02T15:04:05Z"), nil
}

// standardForms are the formats of .NET that are one letter, in the invariant culture.
var standardForms = map[string]string{
	"d": "MM/dd/yyyy", "D": "dddd, dd MMMM yyyy", "f": "dddd, dd MMMM yyyy HH:mm", "F": "dddd, dd MMMM yyyy HH:mm:ss",
	"g": "MM/dd/yyyy HH:mm", "G": "MM/dd/yyyy HH:mm:ss", "m": "MMMM dd", "M": "MMMM dd", "o": "yyyy-MM-ddTHH:mm:ss.fffffffZ",
	"O": "yyyy-MM-ddTHH:mm:ss.fffffffZ", "r": "ddd, dd MMM yyyy HH:mm:ss 'GMT'", "R": "ddd, dd MMM yyyy HH:mm:ss 'GMT'",
	"s": "yyyy-MM-ddTHH:mm:ss", "t": "HH:mm", "T": "HH:mm:ss", "u": "yyyy-MM-dd HH:mm:ssZ", "U": "dddd, dd MMMM yyyy HH:mm:ss",
	"y": "yyyy MMMM", "Y": "yyyy MMMM",
}

// dateParts are the parts of custom formats of .NET and what they are in Go.
var dateParts = map[string]string{
	"yyyy": "2006", "yyy": "2006", "yy": "06", "MMMM": "January", "MMM": "Jan", "MM": "01", "M": "1", "dddd": "Monday", "ddd": "Mon",
	"dd": "02", "d": "2", "HH": "15", "H": "15", "hh": "03", "h": "3", "mm": "04", "m": "4", "ss": "05", "s": "5", "tt": "PM", "t": "PM",
	"zzz": "-07:00", "zz": "-07", "z": "-07", "K": "Z07:00",
}

// FormatTime writes a time in a format of .NET.
func FormatTime(at time.Time, form any) (any, error) {
	text, ok := form.(string)
	if !ok || text == "" {
		return nil, Expects("a format as a string")
	}
	if standard, ok := standardForms[text]; ok {
		text = standard
	} else if len(text) == 1 {
		return nil, short.Errorf("the date format '%s' is not valid", text)
	}
	var b strings.Builder
	for text != "" {
		part, rest, err := datePart(at, text)
		if err != nil {
			return nil, err
		}
		b.WriteString(part)
		text = rest
	}
	return b.String(), nil
}

// datePart writes the part that a format begins with, and returns the rest of the format.
func datePart(at time.Time, form string) (part, rest string, err error) {
	c := form[0]
	switch c {
	case '\'', '"':
		end := strings.IndexByte(form[1:], c)
		if end < 0 {
			return "", "", short.Errorf("the date format has a quote that is not closed: %s", form)
		}
		return form[1 : end+1], form[end+2:], nil
	case '\\':
		return form[min(1, len(form)):min(2, len(form))], form[min(2, len(form)):], nil
	}
	run := len(form) - len(strings.TrimLeft(form, string(c)))
	if c == 'f' || c == 'F' {
		const most = 9
		digits := fmt.Sprintf("%09d", at.Nanosecond())[:min(run, most)]
		if c == 'F' {
			digits = strings.TrimRight(digits, "0")
		}
		return digits, form[run:], nil
	}
	for n := run; n > 0; n-- {
		if layout, ok := dateParts[form[:n]]; ok {
			return at.Format(layout), form[n:], nil
		}
	}
	return form[:run], form[run:], nil
}
