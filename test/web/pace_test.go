package web

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"kaz/internal/localazure/client"
)

const (
	paceResources = 2000
	paceRate      = 200 // requests in a second
	paceSeconds   = 20
	paceWrites    = 5 // every so many requests is a write
	pacePaints    = 5
	mostPaint     = 200.0 // ms
)

// TestPace measures what a local Azure with 2,000 resources costs at 200 requests a second, with and without a page, and how soon a page
// is painted. The server is a process of its own, whose processor time counts.
func TestPace(t *testing.T) {
	if testing.Short() {
		t.Skip("it measures for a minute")
	}
	browser := chromium(t)
	dir := t.TempDir()
	kaz := filepath.Join(dir, "kaz")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", kaz, "./cmd/kaz")
	build.Dir = "../.."
	build.Env = append(build.Environ(), "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	azure, info := serveAlone(t, kaz, dir)
	p := &pace{T: t, pid: azure.Pid, info: info, client: trusting(t, info)}
	p.send(http.MethodPut, "", `{"location":"eastus"}`)
	for range paceResources {
		p.write()
	}
	t.Logf("%d resources, no page: %.1f %% of a core", paceResources, p.share())
	b := browse(t, browser, info, 2*time.Minute)
	b.waitFor("live", "document.querySelector('#link').dataset.state === 'live'")
	var paints []float64
	for range pacePaints {
		paints = append(paints, firstPaint(t, b))
	}
	slices.Sort(paints)
	paint := paints[len(paints)/2]
	t.Logf("first paint of the map after %.0f ms (median of %.0f)", paint, paints)
	if paint > mostPaint {
		t.Errorf("the first paint comes after %.0f ms, at most %.0f ms are wanted", paint, mostPaint)
	}
	t.Logf("the same with a page: %.1f %% of a core", p.share())
	last := fmt.Sprintf("disk-%d", (p.written-1)%paceResources)
	began := time.Now()
	b.waitFor("the last write is on the page", fmt.Sprintf("document.querySelector('.news').innerText.includes(%q)", last))
	t.Logf("the page shows the last write after %.1f s more", time.Since(began).Seconds())
}

// firstPaint opens the map again, and returns after how many milliseconds it is painted.
func firstPaint(t *testing.T, b *browser) float64 {
	t.Helper()
	const first = "performance.getEntriesByName('first-contentful-paint')"
	b.do(chromedp.Reload())
	b.waitFor("painted", first+".length > 0")
	paint, err := strconv.ParseFloat(b.script("String("+first+"[0].startTime)"), 64)
	if err != nil {
		t.Fatal(err)
	}
	return paint
}

// serveAlone starts a local Azure as a process, and returns what it announces.
func serveAlone(t *testing.T, kaz, dir string) (*os.Process, client.Info) {
	t.Helper()
	azure := exec.Command(kaz, "local", "azure", "--ca-file", filepath.Join(dir, "ca.pem"))
	azure.Env = append(azure.Environ(), "HOME="+dir)
	out, err := azure.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := azure.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = azure.Process.Signal(syscall.SIGTERM) // it may have ended
		_ = azure.Wait()
	})
	line, err := bufio.NewReader(out).ReadBytes('\n')
	var info client.Info
	if err == nil {
		err = json.Unmarshal(line, &info)
	}
	if err != nil {
		t.Fatalf("kaz local azure: %v in %q", err, line)
	}
	return azure.Process, info
}

// trusting is a client that trusts the certificate authority of a local Azure.
func trusting(t *testing.T, info client.Info) *http.Client {
	t.Helper()
	pem, err := os.ReadFile(info.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
}

// pace is a client at a steady pace.
type pace struct {
	*testing.T
	pid     int
	info    client.Info
	client  *http.Client
	written int
}

// share sends requests for a time, and returns how much of a core the server takes meanwhile, in percent.
func (p *pace) share() float64 {
	p.Helper()
	next := time.NewTicker(time.Second / paceRate)
	defer next.Stop()
	before, began := p.used(), time.Now()
	for i := range paceRate * paceSeconds {
		<-next.C
		if i%paceWrites == 0 {
			p.write()
		} else {
			p.send(http.MethodGet, fmt.Sprintf("/providers/Microsoft.Compute/disks/disk-%d", i%paceResources), "")
		}
	}
	took := time.Since(began)
	p.Logf("%.0f requests/s", paceRate*paceSeconds/took.Seconds())
	return 100 * (p.used() - before).Seconds() / took.Seconds()
}

// used is the processor time of the server so far.
func (p *pace) used() time.Duration {
	p.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid))
	if err != nil {
		p.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	const user, system, tick = 11, 12, 10 * time.Millisecond // fields behind the name; Linux counts in hundredths of a second
	total := 0
	for _, field := range []int{user, system} {
		n, err := strconv.Atoi(fields[field])
		if err != nil {
			p.Fatal(err)
		}
		total += n
	}
	return time.Duration(total) * tick
}

// write changes a disk, or makes it.
func (p *pace) write() {
	p.Helper()
	p.send(http.MethodPut, fmt.Sprintf("/providers/Microsoft.Compute/disks/disk-%d", p.written%paceResources),
		fmt.Sprintf(`{"location":"eastus","tags":{"n":"%d"},"properties":{"creationData":{"createOption":"Empty"},"diskSizeGB":4}}`, p.written))
	p.written++
}

func (p *pace) send(method, path, body string) {
	p.Helper()
	link := p.info.ARM + "/subscriptions/" + p.info.Subscription + "/resourceGroups/kaz" + path + "?api-version=2024-03-02"
	if path == "" {
		link = p.info.ARM + "/subscriptions/" + p.info.Subscription + "/resourceGroups/kaz?api-version=2024-03-01"
	}
	r, err := http.NewRequestWithContext(p.Context(), method, link, strings.NewReader(body))
	if err != nil {
		p.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+p.info.Token)
	answer, err := p.client.Do(r)
	if err != nil {
		p.Fatal(err)
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		p.Fatal(err)
	}
	if answer.StatusCode > 299 {
		p.Fatalf("%s %s: %s", method, link, answer.Status)
	}
}
