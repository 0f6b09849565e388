// Package tags is what blobs are found by: tags and searches for them. Layer L2.
package tags

import (
	"encoding/xml"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"kaz/internal/localazure/behaviour"
)

// mostTags is how many tags a blob has.
const mostTags = 10

var (
	tagKey   = regexp.MustCompile(`^[A-Za-z0-9 +\-./:=_]{1,128}$`)
	tagValue = regexp.MustCompile(`^[A-Za-z0-9 +\-./:=_]{0,256}$`)
)

func check(tags map[string]string) error {
	if len(tags) > mostTags {
		return invalid("it has %d tags, at most %d are allowed", len(tags), mostTags)
	}
	for key, value := range tags {
		if !tagKey.MatchString(key) || !tagValue.MatchString(value) {
			return invalid("%q is %q, letters, digits, spaces and + - . / : = _ are allowed", key, value)
		}
	}
	return nil
}

func invalid(format string, args ...any) error {
	return behaviour.Refusal(http.StatusBadRequest, "InvalidTags", "The tags specified are invalid: "+format+".", args...)
}

// InHeader returns the tags in a header, which are spelled as in a URL.
func InHeader(text string) (map[string]string, error) {
	if text == "" {
		return nil, nil
	}
	values, err := url.ParseQuery(text)
	if err != nil {
		return nil, invalid("%q is not KEY=VALUE&KEY=VALUE", text)
	}
	tags := map[string]string{}
	for key, all := range values {
		if len(all) > 1 {
			return nil, invalid("the tag %q is there %d times", key, len(all))
		}
		tags[key] = all[0]
	}
	return tags, check(tags)
}

// List is tags as a document.
type List struct {
	XMLName xml.Name `xml:"Tags"`
	Tags    []tag    `xml:"TagSet>Tag"`
}

type tag struct{ Key, Value string }

// ListOf returns tags as a document.
func ListOf(tags map[string]string) *List {
	list := &List{}
	for key, value := range tags {
		list.Tags = append(list.Tags, tag{key, value})
	}
	slices.SortFunc(list.Tags, func(a, b tag) int { return strings.Compare(a.Key, b.Key) })
	return list
}

// Map returns the tags of a document of a client.
func (l List) Map() (map[string]string, error) {
	tags := map[string]string{}
	for _, t := range l.Tags {
		if _, twice := tags[t.Key]; twice {
			return nil, invalid("the tag %q is there twice", t.Key)
		}
		tags[t.Key] = t.Value
	}
	return tags, check(tags)
}
