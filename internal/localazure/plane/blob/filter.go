package blob

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/storage"
)

// filter is a search by tags: blobs are found for which all conditions of one of its lists are true.
type filter [][]tagCondition

// tagCondition compares a tag with a value. A blob without the tag does not meet it.
type tagCondition struct{ key, operator, value string }

// containerKey is what a search calls the container of a blob.
const containerKey = "@container"

// token is the next part of a search: a key with or without quotes, an operator, a value, or a word between conditions.
var token = regexp.MustCompile(`^\s*("[^"]*"|'[^']*'|<=|>=|<>|[=<>]|@?[A-Za-z0-9_]+)`)

// mostFilter is how many characters a search has.
const mostFilter = 4096

// parseFilter parses a search such as "a"='1' AND "b">='2'.
func parseFilter(text string) (all filter, err error) {
	if len(text) > mostFilter {
		return nil, fmt.Errorf("it has %d characters, at most %d are allowed", len(text), mostFilter)
	}
	rest := text
	next := func() string {
		found := token.FindStringSubmatch(rest)
		if found == nil {
			return ""
		}
		rest = rest[len(found[0]):]
		return found[1]
	}
	all = filter{nil}
	for {
		key, operator, value := next(), next(), next()
		if key == "" || key[0] == '\'' || !slices.Contains([]string{"=", "<", ">", "<=", ">=", "<>"}, operator) ||
			len(value) < 2 || value[0] != '\'' {
			return nil, fmt.Errorf("%q is not a list of conditions such as \"key\"='value'", text)
		}
		last := len(all) - 1
		all[last] = append(all[last], tagCondition{strings.Trim(key, `"`), operator, value[1 : len(value)-1]})
		switch word := next(); {
		case strings.TrimSpace(rest) == "" && word == "":
			return all, nil
		case strings.EqualFold(word, "and"):
		case strings.EqualFold(word, "or"):
			all = append(all, nil)
		default:
			return nil, fmt.Errorf("%q has %q where AND or OR is allowed", text, word+rest)
		}
	}
}

// matches reports whether a blob with tags in a container is found.
func (f filter) matches(tags map[string]string, container string) bool {
	return slices.ContainsFunc(f, func(all []tagCondition) bool {
		return !slices.ContainsFunc(all, func(t tagCondition) bool { return !t.met(tags, container) })
	})
}

func (t tagCondition) met(tags map[string]string, container string) bool {
	value, there := tags[t.key]
	if t.key == containerKey {
		value, there = container, true
	}
	order := strings.Compare(value, t.value)
	switch t.operator {
	case "=":
		return there && order == 0
	case "<>":
		return order != 0
	case "<":
		return there && order < 0
	case ">":
		return there && order > 0
	case "<=":
		return there && order <= 0
	}
	return there && order >= 0
}

// checkTagCondition returns why the request must not be carried out on a blob with its tags.
func (c *call) checkTagCondition(b stored, there bool) error {
	const header = "x-ms-if-tags"
	text := c.r.Header.Get(header)
	if text == "" {
		return nil
	}
	f, err := parseFilter(text)
	switch {
	case err != nil:
		return invalidHeader(header, text, "conditions on tags: "+err.Error())
	case !there || !f.matches(b.Tags, c.container.Name()):
		return unmet()
	}
	return nil
}

// foundBlobs is a page of blobs that have tags.
type foundBlobs struct {
	XMLName xml.Name    `xml:"EnumerationResults"`
	Service string      `xml:"ServiceEndpoint,attr"`
	Where   string      `xml:"Where"`
	Blobs   []foundBlob `xml:"Blobs>Blob"`
	Next    string      `xml:"NextMarker"`
}

type foundBlob struct {
	Name      string `xml:"Name"`
	Container string `xml:"ContainerName"`
	Tags      *tagList
}

// search answers with the blobs of a container or an account that have tags, with the tags that the search names.
func (c serviceCall) search() error {
	where := c.query.Get("where")
	f, err := parseFilter(where)
	if err != nil || len(f) > 1 {
		return invalidParameter("where", where, "conditions such as \"key\"='value' with AND between them")
	}
	most, err := c.pageSize()
	if err != nil {
		return err
	}
	first, err := parseMarker(c.query.Get("marker"))
	if err != nil {
		return err
	}
	page := foundBlobs{Service: "https://" + c.r.Host + "/", Where: where}
	for _, b := range c.tagged(f) {
		// The marker has the container, too: the names of containers have no slash.
		at := version{name: b.Container + "/" + b.Name}
		if at.compare(first) < 0 {
			continue
		}
		if len(page.Blobs) == most {
			page.Next = at.marker()
			break
		}
		page.Blobs = append(page.Blobs, b)
	}
	reply(c.w, http.StatusOK, page)
	return nil
}

// tagged returns the blobs that a search finds in the container or the account, in order.
func (c serviceCall) tagged(f filter) (all []foundBlob) {
	containers := map[string]string{} // when they were made, by what the keys of their blobs begin with
	c.service.Azure.Look(func(w behaviour.World) {
		if c.container.Is(storage.ContainerType) {
			containers[c.container.Key()+"/"] = c.made
			return
		}
		for id, doc := range w.List(c.container, storage.ContainerType) {
			containers[id.Key()+"/"] = storage.MadeAt(doc)
		}
	})
	c.service.mu.Lock()
	defer c.service.mu.Unlock()
	for key, b := range c.service.blobs {
		for before, made := range containers {
			text, inside := strings.CutPrefix(key, before)
			container := before[strings.LastIndex(strings.TrimSuffix(before, "/"), "/")+1 : len(before)-1]
			if !inside || b.Made != made || strings.Contains(text, "\x00") || !f.matches(b.Tags, container) {
				continue
			}
			named := map[string]string{}
			for _, t := range f[0] {
				if value, there := b.Tags[t.key]; there {
					named[t.key] = value
				}
			}
			all = append(all, foundBlob{text, container, listTags(named)})
		}
	}
	slices.SortFunc(all, func(a, b foundBlob) int { return strings.Compare(a.Container+"/"+a.Name, b.Container+"/"+b.Name) })
	return all
}
