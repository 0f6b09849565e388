package table

import (
	"net/http"
	"regexp"
	"strings"

	"kaz/internal/localazure/plane/table/entity"
)

// kind is what the path of a request names.
type kind string

const (
	service     kind = "service"
	batch       kind = "batch"
	allTables   kind = "tables"
	oneTable    kind = "table"
	allEntities kind = "entities"
	oneEntity   kind = "entity"
)

// path is the path of a request.
type path struct {
	kind  kind
	table string
	key   entity.Key
}

var (
	pathForm = regexp.MustCompile(`^/([^/()]*)(?:\((.*)\))?$`)
	nameForm = regexp.MustCompile(`^(?:TableName\s*=\s*)?'((?:[^']|'')*)'$`)
	keysForm = regexp.MustCompile(`^\s*PartitionKey\s*=\s*'((?:[^']|'')*)'\s*,\s*RowKey\s*=\s*'((?:[^']|'')*)'\s*$`)
	keysBack = regexp.MustCompile(`^\s*RowKey\s*=\s*'((?:[^']|'')*)'\s*,\s*PartitionKey\s*=\s*'((?:[^']|'')*)'\s*$`)
)

// parsePath reads a path such as /Tables('People') or /People(PartitionKey='a',RowKey='b').
func parsePath(text string) (path, error) {
	unquote := func(s string) string { return strings.ReplaceAll(s, "''", "'") }
	if text == "" || text == "/" {
		return path{kind: service}, nil
	}
	m := pathForm.FindStringSubmatch(text)
	if m == nil {
		return path{}, invalidPath(text)
	}
	p := path{table: m[1]}
	switch {
	case p.table == "$batch" && m[2] == "":
		return path{kind: batch}, nil
	case strings.EqualFold(p.table, "Tables"):
		if m[2] == "" {
			return path{kind: allTables}, nil
		}
		name := nameForm.FindStringSubmatch(m[2])
		if name == nil {
			return path{}, invalidPath(text)
		}
		return path{kind: oneTable, table: unquote(name[1])}, nil
	case m[2] == "":
		p.kind = allEntities
		return p, nil
	}
	p.kind = oneEntity
	if keys := keysForm.FindStringSubmatch(m[2]); keys != nil {
		p.key = entity.Key{Partition: unquote(keys[1]), Row: unquote(keys[2])}
	} else if keys := keysBack.FindStringSubmatch(m[2]); keys != nil {
		p.key = entity.Key{Partition: unquote(keys[2]), Row: unquote(keys[1])}
	} else {
		return path{}, invalidPath(text)
	}
	return p, nil
}

func invalidPath(text string) error {
	return refuse(http.StatusBadRequest, "InvalidUri", "The requested URI does not represent any resource on the server: %q is given, "+
		"paths such as /Tables, /Tables('NAME'), /NAME and /NAME(PartitionKey='P',RowKey='R') are allowed.", text)
}
