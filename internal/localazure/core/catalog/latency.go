package catalog

import (
	_ "embed"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

//go:embed latency.txt
var latencyText string

// Span is a lognormal distribution of durations with a median and a spread. The zero value is no time.
type Span struct {
	Median, P90 time.Duration
}

// Draw returns a duration for a number from the standard normal distribution.
func (s Span) Draw(normal float64) time.Duration {
	if s.Median <= 0 {
		return 0
	}
	return time.Duration(float64(s.Median) * math.Exp(s.sigma()*normal))
}

// z90 is the 90th percentile of the standard normal distribution.
const z90 = 1.2815515655446004

func (s Span) sigma() float64 {
	if s.P90 <= s.Median {
		return 0
	}
	return math.Log(float64(s.P90)/float64(s.Median)) / z90
}

// fromMean returns the lognormal distribution with a mean and a 90th percentile.
func fromMean(mean, p90 float64) Span {
	if p90 < mean {
		p90 = mean
	}
	// ln(p90/mean) = z90 s - s²/2
	under := z90*z90 - 2*math.Log(p90/mean)
	if under < 0 {
		under = 0
	}
	s := z90 - math.Sqrt(under)
	return Span{Median: seconds(mean * math.Exp(-s*s/2)), P90: seconds(p90)}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Latency is the duration of a verb for a type.
type Latency struct {
	Type, Verb       string
	Reply, Operation Span
	// Nearest is true if the duration is from a similar row.
	Nearest bool
}

// Latencies is the table of latencies.
type Latencies struct {
	rows map[string]Latency
	list []Latency
}

// ReadLatencies parses the embedded table.
func ReadLatencies() (*Latencies, error) {
	t := &Latencies{rows: map[string]Latency{}}
	for number, line := range strings.Split(latencyText, "\n") {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		row, err := readRow(fields)
		if err != nil {
			return nil, fmt.Errorf("latency table, line %d: %w", number+1, err)
		}
		key := rowKey(row.Type, row.Verb)
		if _, twice := t.rows[key]; twice {
			return nil, fmt.Errorf("latency table, line %d: %s %s has two rows", number+1, row.Type, row.Verb)
		}
		t.rows[key] = row
		t.list = append(t.list, row)
	}
	return t, nil
}

func rowKey(fullType, verb string) string { return strings.ToLower(fullType + " " + verb) }

func readRow(fields []string) (Latency, error) {
	const columns = 6
	row := Latency{}
	if len(fields) == columns+1 && fields[columns] == "~" {
		row.Nearest = true
		fields = fields[:columns]
	}
	if len(fields) != columns {
		return row, fmt.Errorf("%d fields, want %d", len(fields), columns)
	}
	row.Type, row.Verb = fields[0], fields[1]
	var figures [4]float64
	for i, f := range fields[2:] {
		if f == "-" {
			continue
		}
		n, err := strconv.ParseFloat(f, 64)
		if err != nil || n < 0 {
			return row, fmt.Errorf("%q is not a number of seconds", f)
		}
		figures[i] = n
	}
	if figures[0] > 0 {
		row.Reply = fromMean(figures[0], figures[1])
	}
	row.Operation = Span{Median: seconds(figures[2]), P90: seconds(figures[3])}
	return row, nil
}

// Of returns the row for a type and verb, or the nearest row: of the parent types, of the provider, of all types. An
// action without a row has the row of other actions.
func (t *Latencies) Of(fullType, verb string) Latency {
	namespace, _, _ := strings.Cut(fullType, "/")
	isAction := !isVerb(verb)
	for _, v := range []string{verb, "action"} {
		for typ := fullType; strings.Contains(typ, "/"); typ = typ[:strings.LastIndexByte(typ, '/')] {
			if row, ok := t.rows[rowKey(typ, v)]; ok {
				row.Nearest = row.Nearest || typ != fullType
				return row
			}
		}
		for _, typ := range []string{namespace + "/*", "*"} {
			if row, ok := t.rows[rowKey(typ, v)]; ok {
				row.Nearest = true
				return row
			}
		}
		if !isAction {
			break
		}
	}
	return Latency{Type: fullType, Verb: verb, Nearest: true}
}

func isVerb(verb string) bool {
	switch verb {
	case "get", "list", "create", "update", "patch", "delete", "poll":
		return true
	}
	return false
}

// All returns the rows of the table in its order.
func (t *Latencies) All() []Latency { return t.list }
