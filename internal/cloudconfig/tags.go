package cloudconfig

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"kaz/internal/azure"
)

// ResourceTags returns the tags of tags and tagsMap. Names are unique without case, as Azure
// requires.
func (c Config) ResourceTags() map[string]string {
	tags, _ := c.parseTags()
	return tags
}

// SystemTagPrefixes returns the prefixes of tags that kaz does not manage. Without prefixes, kaz
// removes no tags. An empty prefix matches every tag, so the result is then empty too.
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
			warn(key, "a tag without a name is ignored")
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
				warn("tags", "%q is ignored: want name=value; tagsMap allows every character", shorten(pair))
				continue
			}
			put("tags", name, value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.TagsMap)) {
		put("tagsMap", name, c.TagsMap[name])
	}
	if c.SystemTags != "" && c.SystemTagPrefixes() == nil {
		warn("systemTags", "an empty name in the list matches every tag: no tag is removed")
	}
	return tags, warnings
}

// checkTags adds a problem for each tag that Azure rejects.
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

// tagValue trims blanks, except around "null": Azure reserves the bare word.
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
