package cloudconfig

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ResourceTags are the tags that tags and tagsMap ask for. No two names differ
// only in case: Azure would refuse that.
func (c Config) ResourceTags() map[string]string {
	tags, _ := c.parseTags()
	return tags
}

// SystemTagPrefixes are the beginnings of names of tags that belong to others.
// When there are none, no tag is ever taken off. An empty name in the list is
// the beginning of every name, so it protects all tags: the list is then empty
// too.
func (c Config) SystemTagPrefixes() []string {
	if c.SystemTags == "" {
		return nil
	}
	prefixes := strings.Split(c.SystemTags, ",")
	for i := range prefixes {
		prefixes[i] = strings.TrimSpace(prefixes[i])
	}
	if slices.Contains(prefixes, "") {
		return nil
	}
	return prefixes
}

func (c Config) parseTags() (map[string]string, []Warning) {
	var warnings []Warning
	warn := func(key, format string, args ...any) {
		warnings = append(warnings, Warning{Key: key, Message: fmt.Sprintf(format, args...)})
	}
	tags := map[string]string{}
	put := func(key, name, value string) {
		name = strings.TrimSpace(name)
		if name == "" {
			warn(key, "a tag without a name is left out")
			return
		}
		if other, found := foldedKey(tags, name); found {
			delete(tags, other)
		}
		tags[name] = tagValue(value)
	}
	if c.Tags != "" {
		for pair := range strings.SplitSeq(c.Tags, ",") {
			name, value, ok := strings.Cut(pair, "=")
			if !ok || strings.Contains(value, "=") {
				warn("tags", "%q is left out: wanted name=value; tagsMap can hold every character", shorten(pair))
				continue
			}
			put("tags", name, value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.TagsMap)) {
		put("tagsMap", name, c.TagsMap[name])
	}
	if c.SystemTags != "" && c.SystemTagPrefixes() == nil {
		warn("systemTags", "an empty name in the list protects every tag, so none is taken off")
	}
	return tags, warnings
}

// tagValue trims, but never down to the word null, which Azure reserves.
func tagValue(value string) string {
	if trimmed := strings.TrimSpace(value); !strings.EqualFold(trimmed, "null") {
		return trimmed
	}
	return value
}

func foldedKey(tags map[string]string, name string) (string, bool) {
	for key := range tags {
		if strings.EqualFold(key, name) {
			return key, true
		}
	}
	return "", false
}
