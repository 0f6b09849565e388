package blob

import (
	"encoding/xml"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// mostTags is how many tags a blob has.
const mostTags = 10

var (
	tagKey   = regexp.MustCompile(`^[A-Za-z0-9 +\-./:=_]{1,128}$`)
	tagValue = regexp.MustCompile(`^[A-Za-z0-9 +\-./:=_]{0,256}$`)
)

func checkTags(tags map[string]string) error {
	if len(tags) > mostTags {
		return invalidTags("it has %d tags, at most %d are allowed", len(tags), mostTags)
	}
	for key, value := range tags {
		if !tagKey.MatchString(key) || !tagValue.MatchString(value) {
			return invalidTags("%q is %q, letters, digits, spaces and + - . / : = _ are allowed", key, value)
		}
	}
	return nil
}

func invalidTags(format string, args ...any) error {
	return refuse(http.StatusBadRequest, "InvalidTags", "The tags specified are invalid: "+format+".", args...)
}

// tagsIn returns the tags in a header, which are spelled as in a URL.
func tagsIn(text string) (map[string]string, error) {
	if text == "" {
		return nil, nil
	}
	values, err := url.ParseQuery(text)
	if err != nil {
		return nil, invalidHeader("x-ms-tags", text, "KEY=VALUE&KEY=VALUE")
	}
	tags := map[string]string{}
	for key, all := range values {
		if len(all) > 1 {
			return nil, invalidTags("the tag %q is there %d times", key, len(all))
		}
		tags[key] = all[0]
	}
	return tags, checkTags(tags)
}

type tagList struct {
	XMLName xml.Name `xml:"Tags"`
	Tags    []tag    `xml:"TagSet>Tag"`
}

type tag struct{ Key, Value string }

func listTags(tags map[string]string) *tagList {
	list := &tagList{}
	for key, value := range tags {
		list.Tags = append(list.Tags, tag{key, value})
	}
	slices.SortFunc(list.Tags, func(a, b tag) int { return strings.Compare(a.Key, b.Key) })
	return list
}

// tags answers with the tags of a blob.
func (c blobCall) tags() error {
	c.service.mu.Lock()
	b, err := c.find(reads)
	c.service.mu.Unlock()
	if err != nil {
		return err
	}
	reply(c.w, http.StatusOK, listTags(b.Tags))
	return nil
}

// setTags replaces the tags of a blob, which leaves its etag as it is.
func (c blobCall) setTags() error {
	const most = 64 << 10
	text, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, most))
	if err != nil {
		return refuse(http.StatusRequestEntityTooLarge, "RequestBodyTooLarge", "%v", err)
	}
	var list tagList
	if err := xml.Unmarshal(text, &list); err != nil {
		return invalidDocument(err)
	}
	tags := map[string]string{}
	for _, t := range list.Tags {
		if _, twice := tags[t.Key]; twice {
			return invalidTags("the tag %q is there twice", t.Key)
		}
		tags[t.Key] = t.Value
	}
	if err := checkTags(tags); err != nil {
		return err
	}
	c.service.mu.Lock()
	defer c.service.mu.Unlock()
	b, err := c.find(changes)
	if err != nil {
		return err
	}
	b.Tags = tags
	if err := c.service.keep(c.key(), b); err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
