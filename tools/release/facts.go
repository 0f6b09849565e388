package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// facts are what git knows of the commit that is released.
type facts struct {
	commit   string
	date     time.Time
	previous string   // the newest tag of a version before the commit, "" if there is none
	subjects []string // of the commits since then, the newest first
}

// readFacts reads the facts of a checkout. Changes that are not committed are an error: such a release could not be built again.
func readFacts(ctx context.Context, source string) (facts, error) {
	var f facts
	changed, err := git(ctx, source, "status", "--porcelain")
	if err != nil {
		return f, err
	}
	if changed != "" {
		line, _, _ := strings.Cut(changed, "\n")
		return f, fmt.Errorf("-source %s: %s is not committed; want a checkout without changes", source, strings.TrimSpace(line))
	}
	if f.commit, err = git(ctx, source, "rev-parse", "HEAD"); err != nil {
		return f, err
	}
	date, err := git(ctx, source, "show", "-s", "--format=%cI", "HEAD")
	if err != nil {
		return f, err
	}
	if f.date, err = time.Parse(time.RFC3339, date); err != nil {
		return f, fmt.Errorf("date of commit %s: %w", f.commit, err)
	}
	f.date = f.date.UTC()
	// The tag of the release itself may be there already.
	if f.previous, err = git(ctx, source, "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*", "HEAD^"); err != nil {
		f.previous = "" // no version was released
	}
	revisions := "HEAD"
	if f.previous != "" {
		revisions = f.previous + "..HEAD"
	}
	subjects, err := git(ctx, source, "log", "--no-merges", "--format=%s", revisions)
	f.subjects = strings.Split(subjects, "\n")
	return f, err
}

// git runs git in a folder and returns its output without blanks at the ends.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...).Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(failed.Stderr))
	}
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}
