// Package web opens the web page of a local Azure in Chromium.
package web

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"kaz/internal/localazure/client"
	"kaz/internal/localazure/server"
	"kaz/internal/localazure/web"
	"kaz/internal/picture"
)

// screenshots is where the pictures of a run stay.
const screenshots = "../../bin/tests/web"

// browser is Chromium with a local Azure to look at.
type browser struct {
	t    *testing.T
	tab  func() context.Context // ends after some time
	info client.Info
	// patience is how long it waits for the page.
	patience time.Duration
}

// explainer explains a Service, as kaz local up does for its cluster.
type explainer struct{}

func (explainer) Objects(context.Context) ([]web.Subject, error) {
	return []web.Subject{{Kind: "service", Name: "default/web"}}, nil
}

func (explainer) Explain(context.Context, web.Subject) (picture.Picture, error) {
	p := picture.New("Service default/web: changes are pending", "Kubernetes", "Addresses", "Rules")
	p.Add(0, picture.Box{Key: "web", Kind: "Service", Name: "default/web", State: picture.Wait, To: []string{"ip"}})
	p.Add(1, picture.Box{Key: "ip", Kind: "public IP", Name: "front", State: picture.Create, Resource: "/subscriptions/s/ip", To: []string{"rule"}})
	p.Add(2, picture.Box{Key: "rule", Kind: "rule", Name: "http", State: picture.Bad, Lines: []string{"Tcp 80 to 80"}})
	p.Note("Steps in Azure", picture.Wait, []string{"1. create the public IP"})
	p.Text = "Service default/web: changes are pending"
	return *p, nil
}

// start starts a local Azure and Chromium, and opens the link.
func start(t *testing.T) *browser {
	t.Helper()
	program := chromium(t)
	a, err := server.Start(t.Context(), server.Options{WebWrite: true, Throttle: "azure", Why: explainer{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return browse(t, program, a.Info(), time.Minute)
}

// chromium is the file of Chromium. Without it the test is skipped.
func chromium(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("there is no chromium; as root tools/node-programs.sh tests installs it")
	}
	return program
}

// browse starts Chromium for at most a time, and opens the link to the page of a local Azure.
func browse(t *testing.T, program string, info client.Info, longest time.Duration) *browser {
	t.Helper()
	var reader sync.WaitGroup // of the console
	t.Cleanup(reader.Wait)
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // the sandbox refuses root
	}
	ctx, end := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(end)
	ctx, end = chromedp.NewContext(ctx)
	t.Cleanup(end)
	ctx, end = context.WithTimeout(ctx, longest)
	t.Cleanup(end)
	b := &browser{t: t, tab: func() context.Context { return ctx }, info: info, patience: 10 * time.Second}
	messages := chromedp.Console(ctx)
	reader.Go(func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			if m.Type != "log" && m.Type != "debug" && m.Type != "info" {
				b.t.Errorf("console: %v", m)
			}
		}
	})
	b.do(chromedp.Navigate(b.info.Web))
	return b
}

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.tab(), steps...); err != nil {
		b.t.Fatal(err)
	}
}

// script runs a script, and returns the text that it computes.
func (b *browser) script(script string) string {
	b.t.Helper()
	text, err := chromedp.Run(b.tab(), chromedp.Evaluate[string](script))
	if err != nil {
		b.t.Fatal(err)
	}
	return text
}

// waitFor waits until a script is true. The page may change meanwhile.
func (b *browser) waitFor(what, script string) {
	b.t.Helper()
	ctx, end := context.WithTimeout(b.tab(), b.patience)
	defer end()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		is, err := chromedp.Run(ctx, chromedp.Evaluate[bool](script))
		if is {
			return
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			b.t.Fatalf("%s: %v; the page has %.2000s", what, err, b.script("document.querySelector('main').innerText"))
		}
	}
}

// size sets the width of the page and its colours.
func (b *browser) size(width int64, colours string) {
	b.t.Helper()
	const height = 900
	b.do(chromedp.EmulateViewport(width, height))
	feature := &emulation.MediaFeature{Name: "prefers-color-scheme", Value: colours}
	_, err := chromedp.Call(b.tab(), emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{feature}})
	if err != nil {
		b.t.Fatal(err)
	}
}

// open opens a view.
func (b *browser) open(path string) {
	b.t.Helper()
	base, _, _ := strings.Cut(b.info.Web, "?")
	b.do(chromedp.Navigate(base + path))
	b.waitFor("live", "document.querySelector('#link').dataset.state === 'live'")
}

// picture keeps a picture of the page.
func (b *browser) picture(name string) {
	b.t.Helper()
	png, err := chromedp.Run(b.tab(), chromedp.CaptureScreenshot())
	if err == nil {
		err = os.MkdirAll(screenshots, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(screenshots, name+".png"), png, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// send sends a request to the local Azure.
func (b *browser) send(method, path, body string) int {
	b.t.Helper()
	link := b.info.ARMHTTP + "/subscriptions/" + b.info.Subscription + "/resourceGroups/kaz" + path + "?api-version=2024-05-01"
	r, err := http.NewRequestWithContext(b.tab(), method, link, bytes.NewBufferString(body))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+b.info.Token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer answer.Body.Close()
	return answer.StatusCode
}

const (
	address  = "/providers/Microsoft.Network/publicIPAddresses/front"
	document = `{"location":"eastus","sku":{"name":"Standard"},"properties":{"publicIPAllocationMethod":"Static"}}`
)

// shows is a script: whether a text is in the main part of the page.
func shows(text string) string {
	return fmt.Sprintf("document.querySelector('#live').innerText.includes(%q)", text)
}

// card is a script: the card of a resource on the map.
func card(name string) string {
	return fmt.Sprintf("[...document.querySelectorAll('.card')].find(e => e.querySelector('.name').textContent === %q)", name)
}

// TestPage follows a resource and a fault through the page.
func TestPage(t *testing.T) {
	b := start(t)
	b.size(1440, "light")
	b.open("")
	if got := b.script("location.search + document.cookie"); got != "" {
		t.Errorf("scripts see the token: %s", got)
	}
	b.send(http.MethodPut, "", `{"location":"eastus"}`)
	b.send(http.MethodPut, address, document)
	b.waitFor("the address comes", card("front")+" !== undefined")
	b.waitFor("it glows", card("front")+".matches('.created, .changed')")
	b.do(chromedp.Evaluate[chromedp.Void](card("front") + ".querySelector('a').click()"))
	b.waitFor("the panel opens", "!document.querySelector('#panel').hidden && document.activeElement.closest('#panel') !== null")
	b.waitFor("it has the document", "document.querySelector('#panel pre').innerText.includes('\"ipAddress\"')")
	b.picture("panel")
	b.send(http.MethodDelete, address, "")
	b.waitFor("the address goes", card("front")+" === undefined")
	b.waitFor("the panel says so", "document.querySelector('#panel .lead').innerText.includes('deleted')")
	b.do(chromedp.KeyEvent("\u001b"))
	b.waitFor("Escape closes the panel", "document.querySelector('#panel').hidden")

	b.open("faults")
	b.do(chromedp.Evaluate[chromedp.Void]("[...document.querySelectorAll('.presets button')].find(e => e.innerText.startsWith('429')).click()"))
	b.waitFor("the rule is there", shows("error 429"))
	b.waitFor("live", "document.querySelector('#link').dataset.state === 'live'")
	if got := b.send(http.MethodGet, address, ""); got != http.StatusTooManyRequests {
		t.Errorf("a request under the rule: %d", got)
	}
	b.waitFor("it has bitten", "document.querySelector('.rules .warn')?.innerText === '1'")
	b.picture("faults")
	b.do(chromedp.Evaluate[chromedp.Void]("document.querySelector('.rules button').click()"))
	b.waitFor("it is gone", shows("None. All requests"))

	b.open("traffic?status=4")
	b.waitFor("the refused request", shows("TooManyRequests"))
	b.picture("traffic")
}

// audit is a script that looks for what keeps people from using the page: texts with too little contrast, fields, buttons and links
// without a name, ids that are there twice, and content that is wider than the page.
const audit = `(() => {
  const problems = [];
  const channel = (c) => (c /= 255) <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4;
  const parse = (text) => (text.match(/[\d.]+/g) || []).map(Number);
  const luminance = ([r, g, b]) => .2126 * channel(r) + .7152 * channel(g) + .0722 * channel(b);
  const behind = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c.length === 3 || c[3] === 1) return c; } return [255, 255, 255]; };
  for (const e of document.querySelectorAll('body *')) {
    if (!e.getClientRects().length || e.closest('.hidden, .skip, svg') || ![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
    if (e.getAnimations().length || e.closest('.created, .changed')?.getAnimations().length) continue;
    const [a, b] = [luminance(parse(getComputedStyle(e).color)), luminance(behind(e))];
    const contrast = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (contrast < 4.5) problems.push('contrast ' + contrast.toFixed(2) + ' of ' + e.className + ' ' + e.textContent.slice(0, 40));
  }
  for (const e of document.querySelectorAll('a, button, input:not([type=hidden]), select, meter, progress, [role=region]')) {
    const labelled = e.getAttribute('aria-labelledby');
    const name = e.innerText || e.textContent || e.getAttribute('aria-label') || (labelled && document.getElementById(labelled)) || e.labels?.length || e.querySelector('img')?.alt;
    if (!name) problems.push('no name: ' + e.outerHTML.slice(0, 100));
    if (e.matches('input:not([type=hidden]), select') && !e.labels.length) problems.push('no label: ' + e.outerHTML.slice(0, 100));
  }
  const ids = [...document.querySelectorAll('[id]')].map((e) => e.id);
  for (const id of new Set(ids.filter((x, i) => ids.indexOf(x) !== i))) problems.push('id twice: ' + id);
  for (const name of ['header', 'nav', 'main', 'h1']) if (!document.querySelector(name)) problems.push('no ' + name);
  if (document.documentElement.scrollWidth > innerWidth) problems.push('it is wider than the page: ' + document.documentElement.scrollWidth);
  return problems.join('\n');
})()`

// TestViews opens each view at the widths of a phone and of a desk, light and dark, and audits it.
func TestViews(t *testing.T) {
	b := start(t)
	b.send(http.MethodPut, "", `{"location":"eastus"}`)
	b.send(http.MethodPut, address, document)
	b.send(http.MethodPut, "/providers/Microsoft.Network/virtualNetworks/a-network-with-a-rather-long-name-that-does-not-fit",
		`{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/8","fd00::/48"]},
		"subnets":[{"name":"nodes","properties":{"addressPrefix":"10.0.0.0/24"}}]}}`)
	b.send(http.MethodGet, "/providers/Microsoft.Network/publicIPAddresses/none", "")
	resource := "resource?id=/subscriptions/" + b.info.Subscription + "/resourceGroups/kaz" + address
	for _, width := range []int64{360, 1440} {
		for _, colours := range []string{"light", "dark"} {
			b.size(width, colours)
			for name, path := range map[string]string{"map": "", "resource": resource, "traffic": "traffic", "faults": "faults",
				"objects": "why", "why": "why?kind=service&name=default/web"} {
				b.open(path)
				if got := b.script(audit); got != "" {
					t.Errorf("%s, %d pixels, %s:\n%s", name, width, colours, got)
				}
				b.picture(fmt.Sprintf("%s-%d-%s", name, width, colours))
			}
		}
	}
}
