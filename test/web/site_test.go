package web

import (
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"kaz/internal/localazure/client"
)

var site = flag.String("site", "", "folder with the site of docs, as make docs DIR=folder writes it")

// TestSite looks for a page of the docs in the search of their site, by the keyboard alone, and audits pages at the widths of a phone and
// of a desk, light and dark.
func TestSite(t *testing.T) {
	if *site == "" {
		t.Skip("no -site is given")
	}
	if _, err := os.Stat(filepath.Join(*site, "search.json")); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(*site)))
	defer server.Close()
	b := browse(t, chromium(t), client.Info{Web: server.URL + "/"}, 2*time.Minute)
	b.size(1440, "light")
	b.do(chromedp.KeyEvent("/"))
	b.waitFor("the key / leads to the search", "document.activeElement.id === 'search'")
	b.do(chromedp.KeyEvent("readiness gate"))
	b.waitFor("pages are found", "document.querySelectorAll('#results [role=option]').length > 1")
	b.waitFor("the words are in the search", "document.querySelector('#search').value === 'readiness gate'")
	b.picture("site-search")
	b.do(chromedp.KeyEvent(kb.ArrowDown))
	b.waitFor("the first one is chosen", "document.querySelector('#results li').getAttribute('aria-selected') === 'true'")
	b.do(chromedp.KeyEvent(kb.Enter))
	b.waitFor("a page opens that has the words", "location.pathname !== '/' && document.querySelector('main').innerText.toLowerCase().includes('readiness gate')")
	if got := b.script("String(document.querySelector('.menu [aria-current]')?.textContent === document.title.replace(' · kaz', ''))"); got != "true" {
		t.Error("the menu does not show which page is open")
	}
	for _, width := range []int64{360, 1440} {
		for _, colours := range []string{"light", "dark"} {
			b.size(width, colours)
			for name, path := range map[string]string{"home": "", "explain": "guides/explain/", "cluster": "reference/cluster/", "decisions": "decisions/",
				"folder": "guides/"} {
				b.do(chromedp.Navigate(server.URL + "/" + path))
				if got := b.script(audit); got != "" {
					t.Errorf("%s, %d pixels, %s:\n%s", path, width, colours, got)
				}
				b.picture(fmt.Sprintf("site-%s-%d-%s", name, width, colours))
			}
		}
	}
	b.do(chromedp.Navigate(server.URL + "/guides/explain/"))
	const pictures = "[...document.querySelectorAll('.picture img')]"
	b.do(chromedp.Evaluate[chromedp.Void](pictures + ".forEach(e => { e.loading = 'eager' })"))
	b.waitFor("the pictures of the guide", pictures+".length === 2 && "+pictures+".every(e => e.naturalWidth > 500)")
}
