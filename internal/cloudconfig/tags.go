package cloudconfig

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"kaz/internal/azure"
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

// checkTags looks for tags with which Azure would refuse whatever has them.
func (c Config) checkTags(s *checks) {
	tags := c.ResourceTags()
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		key := "tags"
		if _, mapped := foldedKey(c.TagsMap, name); mapped {
			key = "tagsMap"
		}
		if utf8.RuneCountInString(name) > azure.LongestTagName || strings.ContainsAny(name, azure.NotInTagNames) {
			s.add(key, name, "must be the name of a tag: at most %d characters, and none of < > %% & \\ ? /", azure.LongestTagName)
		}
		if n := utf8.RuneCountInString(tags[name]); n > azure.LongestTagValue {
			s.add(key, name, "must have a value of at most %d characters, not %d", azure.LongestTagValue, n)
		}
	}
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
