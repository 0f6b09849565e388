package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"kaz/internal/localazure/client"
)

var update = flag.Bool("update", false, "write what the commands of docs/guides/verify.md print")

// startAzure runs a local Azure for the duration of a test.
func startAzure(t *testing.T) client.Info {
	t.Helper()
	printed, stop := launchAzure(t)
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	var info client.Info
	if err := json.NewDecoder(printed).Decode(&info); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, printed) }() // ends with the writer
	return info
}

// kazVerify runs a command and returns what it prints on standard output, and the rest.
func kazVerify(t *testing.T, in string, args ...string) (out, errs string, err error) {
	t.Helper()
	command := rootCommand()
	var stdout, stderr bytes.Buffer
	command.SetIn(strings.NewReader(in))
	command.SetOut(&stdout)
	command.SetErr(&stderr)
	command.SetArgs(args)
	err = command.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

var (
	printed = regexp.MustCompile("(?s)```text\n\\$ kaz (verify [^\n]*)\n(.*?)```")
	// varying is what differs between runs: names of groups, versions and times.
	varying = regexp.MustCompile(`kaz-verify-[a-z0-9]{8}\b|v\d[^ :]*:|, \d[\dhms.]*\n|\(\d[\d.]*[a-z]+,`)
)

// steady replaces what differs between runs.
func steady(text string) string {
	return varying.ReplaceAllStringFunc(text, func(s string) string {
		switch {
		case strings.HasPrefix(s, "kaz-verify-"):
			return "kaz-verify-ab12cd34"
		case strings.HasPrefix(s, "v"):
			return "v1.0.0:"
		case strings.HasPrefix(s, "("):
			return "(1s,"
		}
		return ", 1s\n"
	})
}

// TestVerifyGuide runs the commands of the guide on a local Azure: they print what it says.
// go test ./cmd/kaz -run TestVerifyGuide -update
func TestVerifyGuide(t *testing.T) {
	page, err := filepath.Abs("../../docs/guides/verify.md")
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	startAzure(t)
	t.Chdir(t.TempDir())
	commands := 0
	got := printed.ReplaceAllStringFunc(string(content), func(block string) string {
		commands++
		line := printed.FindStringSubmatch(block)[1]
		out, errs, err := kazVerify(t, "", strings.Fields(line)...)
		if err != nil {
			t.Errorf("%s: %v\n%s", line, err, errs)
		}
		return "```text\n$ kaz " + line + "\n" + steady(out) + "```"
	})
	const known = 4
	if commands != known {
		t.Errorf("the guide has %d commands, want %d", commands, known)
	}
	if *update {
		if err := os.WriteFile(page, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if !*update && got != string(content) {
		t.Errorf("the guide is out of date; run: go test ./cmd/kaz -run TestVerifyGuide -update\n%s", got)
	}
	if report, err := os.ReadFile("report.html"); err != nil || !strings.Contains(string(report), `<td class="agrees">agrees</td>`) {
		t.Errorf("report: %v\n%s", err, report)
	}
}

// TestVerifyAsks checks that nothing is made without a yes.
func TestVerifyAsks(t *testing.T) {
	startAzure(t)
	args := []string{"verify", "azure", "--local", "--location", "West Europe", "--only", "date", "-o", "json"}
	for _, answer := range []string{"", "n\n", "\n"} {
		_, errs, err := kazVerify(t, answer, args...)
		if err == nil || !strings.Contains(err.Error(), "not confirmed") || !strings.Contains(errs, "cost at most 0.00 US dollars") {
			t.Errorf("%q: %v\n%s", answer, err, errs)
		}
	}
	out, _, err := kazVerify(t, "yes\n", args...)
	if err != nil || !strings.Contains(out, `"agree": 1`) {
		t.Errorf("yes: %v\n%s", err, out)
	}
	if out, _, err := kazVerify(t, "", "verify", "clean", "--local", "-o", "json"); err != nil || out != "[]\n" {
		t.Errorf("clean: %v\n%s", err, out)
	}
}
