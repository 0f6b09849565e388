package boot

import (
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"kaz/internal/azure/registry"
)

// function is the text of a function of the boot script.
func function(t testing.TB, name string) string {
	t.Helper()
	_, text, found := strings.Cut(script, "\n"+name+"() {\n")
	text, _, ends := strings.Cut(text, "\n}\n")
	if !found || !ends {
		t.Fatalf("the boot script has no function %s", name)
	}
	return name + "() {\n" + text + "\n}\n"
}

// awks are the programs of that name on this machine: Debian has mawk, and Flatcar has gawk.
func awks(t testing.TB) []string {
	t.Helper()
	var all []string
	for _, name := range []string{"mawk", "gawk", "busybox"} {
		if _, err := exec.LookPath(name); err == nil {
			all = append(all, name)
		}
	}
	if len(all) == 0 {
		t.Skip("the script needs awk")
	}
	return all
}

// call runs functions of the boot script with an awk, and returns what they print.
func call(t testing.TB, awk, input, command string, names ...string) (string, error) {
	t.Helper()
	if awk == "busybox" {
		awk = "busybox awk"
	}
	text := "set -uo pipefail\nawk() { " + awk + " \"$@\"; }\n"
	for _, name := range names {
		text += function(t, name)
	}
	c := exec.CommandContext(t.Context(), "bash", "-c", text+command)
	c.Stdin = strings.NewReader(input)
	var out, problems bytes.Buffer
	c.Stdout, c.Stderr = &out, &problems
	err := c.Run()
	if problems.Len() > 0 {
		t.Errorf("%s: %s", command, problems.String())
	}
	return out.String(), err
}

func TestJSON(t *testing.T) {
	const status = `[{"Endpoint":"https://127.0.0.1:2379","Status":{"header":{"cluster_id":14841639068965178418,
		"member_id":10276657743932975437,"revision":5,"raft_term":2},"version":"3.6.4","isLearner":false,"leader":10276657743932975437}}]` + "\n"
	bundle := strings.Repeat("-----BEGIN CERTIFICATE-----\n"+strings.Repeat("MIIB+/Aa=\n", 60)+"-----END CERTIFICATE-----\n", 40)
	answer, err := json.Marshal(map[string]any{"value": bundle, "id": "https://v/secrets/n/1", "attributes": map[string]any{"value": "no"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, awk := range awks(t) {
		for _, test := range []struct{ text, path, want string }{
			{string(answer), ".value", bundle},
			{string(answer), ".attributes.value", "no"},
			{status, ".0.Status.header.member_id", "10276657743932975437"},
			{status, ".0.Status.leader", "10276657743932975437"},
			{`{"a":{"value":"x"},"b":"\"value\":\"y\"","value":"z"}`, ".value", "z"},
			{`{"value":"{\"token\":\"a.b\",\"c\":\"\\\\\"}"}`, ".value", `{"token":"a.b","c":"\\"}`},
			{`{"v":"\u003c\u00E9\ud83d\ude00 \t\/\\\"\n\n"}`, ".v", "<é😀 \t/\\\"\n\n"},
			{`{"v":"$(id) ` + "`id`" + ` %s & é"}`, ".v", "$(id) `id` %s & é"},
			{` [ [ ] , { } , -1.5e+3 ] `, ".2", "-1.5e+3"},
			{`[1,[2,3],{"a":[4,5]}]`, ".2.a.1", "5"},
			{`{"v":""}`, ".v", ""},
		} {
			if got, err := call(t, awk, test.text, "json "+test.path, "json"); err != nil || got != test.want {
				t.Errorf("%s: json %s of %.80s: %v %q, want %q", awk, test.path, test.text, err, got, test.want)
			}
		}
		for _, text := range []string{``, `{`, `{"v":"x"`, `{"v":"x`, `{"v":"x\`, `{"v":"\u12"}`, `{"v":"\q"}`, `{"v":"x"} 1`, `{"v":"x"}}`,
			`{"v" "x"}`,
			`{"v":"x",}`, `[,]`, `{"v":{"v":"x"}}`, `{"w":"x"}`, `{"v":true}`, `{"v":"\u0000"}`, `{v:"x"}`, `<html>`, `{"v":"x"]`} {
			if got, err := call(t, awk, text, "json .v", "json"); err == nil || got != "" {
				t.Errorf("%s: json .v of %s: %q, want a failure", awk, text, got)
			}
		}
	}
}

// FuzzJSON compares the script's reader of JSON with Go's.
func FuzzJSON(f *testing.F) {
	for _, text := range []string{`x`, `{"v":"a\u00e9\n"}`, `{"a":[{"v":"b"}],"v":"c"}`, `{"v":"\ud800"}`, "\"\\", `{"v":1`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "\x00") || !utf8.ValidString(text) {
			t.Skip("no shell can hold it")
		}
		for _, awk := range awks(t) {
			for _, document := range []string{text, `{"v":` + text + `}`} {
				var want map[string]any
				valid := json.Unmarshal([]byte(document), &want) == nil
				value, isText := want["v"].(string)
				got, err := call(t, awk, document, "json .v", "json")
				if valid && isText && !strings.Contains(value, "\x00") && (err != nil || got != value) {
					t.Errorf("%s: %s: %v %q, want %q", awk, document, err, got, value)
				}
			}
			quoted, err := json.Marshal(map[string]string{"v": text})
			if got, runErr := call(t, awk, string(quoted), "json .v", "json"); err != nil || runErr != nil || got != text {
				t.Errorf("%s: %s: %v %v %q, want %q", awk, quoted, err, runErr, got, text)
			}
		}
	})
}

// hostile are messages of failed programs.
func hostile() []string {
	all := []string{"", "plain", `"quotes" \ 'and' $(id) %s %n`, "lines\n\nand\ttabs\r\n", "\x1b[31mred\x1b[0m \x01\x07\x7f",
		"é “quotes” 😀",
		"\xff\xfe bytes \xc3", "\xc0\x80 \xed\xa0\x80 \xf5\x80\x80\x80", strings.Repeat("é", 1500), strings.Repeat("x", 9000) + "end", "\n\n"}
	var every []byte
	for b := 1; b < 256; b++ {
		every = append(every, byte(b))
	}
	return append(all, string(every))
}

// report reads a report of the script with a message.
func report(t testing.TB, awk, message string) (r Report, text string) {
	t.Helper()
	dir := t.TempDir()
	out, err := call(t, awk, message, `state=`+dir+` current=join began=$(date +%s); IFS= read -rd '' message; report true 60 "$message"`,
		"quote", "report")
	if err != nil {
		t.Errorf("%s: %q: %v", awk, message, err)
	}
	r, said := LastReport(out)
	if !said || !utf8.ValidString(out) || strings.Count(out, "\n") != 1 {
		t.Errorf("%s: the report of %q is no JSON on one line: %q", awk, message, out)
	}
	return r, out
}

// TestReport checks that the report is JSON for every message, and keeps the end of the message.
func TestReport(t *testing.T) {
	for _, awk := range awks(t) {
		for _, message := range hostile() {
			r, text := report(t, awk, message)
			want := strings.TrimSuffix(message[max(0, len(message)-2000):], "\n")
			if utf8.ValidString(want) && r.Message != want || !r.Failed || r.Phase != "join" || !strings.Contains(text, `"code": 60, `) {
				t.Errorf("%s: %q: got %q, want %q: %s", awk, message, r.Message, want, text)
			}
		}
	}
}

// FuzzReport checks that the report is JSON for every message.
func FuzzReport(f *testing.F) {
	for _, message := range hostile() {
		f.Add(message)
	}
	f.Fuzz(func(t *testing.T, message string) {
		if strings.Contains(message, "\x00") {
			t.Skip("no shell can hold it")
		}
		for _, awk := range awks(t) {
			r, _ := report(t, awk, message)
			want := strings.TrimSuffix(message[max(0, len(message)-2000):], "\n")
			if utf8.ValidString(want) && r.Message != want {
				t.Errorf("%s: got %q, want %q", awk, r.Message, want)
			}
		}
	})
}

// TestJoinField checks that a join token of another form is refused before it gets into a file.
func TestJoinField(t *testing.T) {
	for text, valid := range map[string]bool{
		`{"token":"abcdef.0123456789abcdef","caCertHash":"sha256:00ff"}`:                     true,
		`{"token":"abcdef.0123456789abcdef\", \"x\": \"","caCertHash":"sha256:00ff"}`:        false,
		`{"token":"abcdef.0123456789abcdef\nx","caCertHash":"sha256:00ff"}`:                  false,
		`{"token":"abcdef.0123456789ABCDEF","caCertHash":"sha256:00ff"}`:                     false,
		`{"token":"abcdef.0123456789abcdef","caCertHash":"sha256:00ff\nfoo: bar"}`:           false,
		`{"token":"abcdef.0123456789abcdef"}`:                                                false,
		`{"token":["abcdef.0123456789abcdef"],"caCertHash":"sha256:00ff"}`:                   false,
		`{"token":"abcdef.0123456789abcdef","caCertHash":"sha256:00ff"} and the next answer`: false,
	} {
		file := t.TempDir() + "/join.json"
		out, err := call(t, awks(t)[0], text, `KAZ_CLUSTER=prod; cat > `+file+`
			join-field token `+file+` 2>&1 && join-field caCertHash `+file+` 2>&1`, "json", "join-field")
		if valid && (err != nil || out != "abcdef.0123456789abcdef\nsha256:00ff\n") {
			t.Errorf("%s: %v %q", text, err, out)
		}
		if !valid && (err == nil || !strings.Contains(out, "the secret prod-bootstrap-token has no valid ")) {
			t.Errorf("%s: %v %q, want a failure", text, err, out)
		}
	}
}

// TestAddress checks that a machine finds the address with which it reaches others.
func TestAddress(t *testing.T) {
	out, err := call(t, awks(t)[0], "", `ip() { echo "192.0.2.1 via 10.0.0.1 dev eth0 src 10.0.0.4 uid 0"; }; address`, "address")
	if err != nil || out != "10.0.0.4\n" {
		t.Errorf("%v %q", err, out)
	}
	out, err = call(t, awks(t)[0], "", `ip() { echo "RTNETLINK answers: Network is unreachable"; return 2; }; address 2>&1`, "address")
	if err == nil || !strings.Contains(out, "the machine has no default route: RTNETLINK") {
		t.Errorf("%v %q", err, out)
	}
	out, err = call(t, awks(t)[0], "", "address", "address")
	if address := net.ParseIP(strings.TrimSpace(out)); err == nil && address.To4() == nil {
		t.Errorf("this machine has the address %q", out)
	}
}

// TestRegistries checks that the kubelet gets the credential provider if the machine has the program, and starts without it.
func TestRegistries(t *testing.T) {
	const arguments = "KAZ_KUBELET_ARGS=--image-credential-provider-config=/etc/kaz/credential-provider.yaml " +
		"--image-credential-provider-bin-dir=/opt/bin\n"
	for name, test := range map[string]struct {
		program, config bool
		want            string
	}{
		"a node with the program":    {true, true, arguments},
		"a node without the program": {false, true, ""},
		"a member":                   {true, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			write := func(path string, there bool) {
				t.Helper()
				path = filepath.Join(root, path)
				err := os.MkdirAll(filepath.Dir(path), 0o755)
				if there {
					err = errors.Join(err, os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755))
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			write("opt/bin/"+registry.Program, test.program)
			write("etc/kaz/credential-provider.yaml", test.config)
			write("etc/kaz/kubelet.env", true) // of another boot
			out, err := call(t, awks(t)[0], "", "root="+root+"; PATH=$root/opt/bin:$PATH; registries", "registries")
			if err != nil || out != "" {
				t.Fatalf("%v %s", err, out)
			}
			got, err := os.ReadFile(filepath.Join(root, "etc/kaz/kubelet.env"))
			if string(got) != test.want || (err != nil) != (test.want == "") {
				t.Errorf("the arguments of the kubelet are %q, want %q: %v", got, test.want, err)
			}
		})
	}
}
