// Package retail reads the retail prices that Azure publishes, or a file in their format. They need no identity, and are no part of
// Azure Resource Manager. Layer L2.
package retail

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"kaz/internal/plan/nodegroup"
)

// PublicURL is the service with the prices of Azure's public cloud. The other clouds have none of that kind.
const PublicURL = "https://prices.azure.com/api/retail/prices"

// Client reads prices.
type Client struct {
	// Source is the URL of a service with Azure's retail prices, or the path of a file with one of its answers.
	Source string
	// HTTP sends the requests; nil is a client with a timeout.
	HTTP *http.Client
}

const (
	// timeout is that of one request.
	timeout = 30 * time.Second
	// largest is the size of an answer: a page has 1,000 entries of 600 bytes at most.
	largest = 4 << 20
	// pages are how many a query has at most: one size in one region has fewer than a hundred entries.
	pages = 20
)

// answer is a page of prices.
type answer struct {
	Items        []nodegroup.PriceItem
	NextPageLink string
}

// Prices returns the prices of machines of a size in a region.
func (c Client) Prices(ctx context.Context, region, size string) ([]nodegroup.PriceItem, error) {
	if !isURL(c.Source) {
		return c.readFile()
	}
	next, err := query(c.Source, region, size)
	if err != nil {
		return nil, err
	}
	var all []nodegroup.PriceItem
	for range pages {
		page, err := c.page(ctx, next)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if page.NextPageLink == "" {
			return all, nil
		}
		if next, err = follow(next, page.NextPageLink); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%s: the prices of %s in %s have more than %d pages", c.Source, size, region, pages)
}

func isURL(source string) bool {
	return strings.HasPrefix(source, "https://") || strings.HasPrefix(source, "http://")
}

// Check returns an error if a source is neither a URL nor a file with prices.
func Check(source string) error {
	if isURL(source) {
		_, err := query(source, "", "")
		return err
	}
	_, err := Client{Source: source}.readFile()
	return err
}

func (c Client) readFile() ([]nodegroup.PriceItem, error) {
	text, err := os.ReadFile(c.Source)
	if err != nil {
		return nil, err
	}
	var a answer
	if err := json.Unmarshal(text, &a); err != nil {
		return nil, fmt.Errorf("%s: %w", c.Source, err)
	}
	if len(a.Items) == 0 {
		return nil, fmt.Errorf("%s: has no Items: it must be an answer of Azure's retail prices, such as of %s", c.Source, PublicURL)
	}
	return a.Items, nil
}

// query returns the URL of the prices of a size in a region.
func query(source, region, size string) (*url.URL, error) {
	u, err := url.Parse(source)
	if err != nil {
		return nil, err
	}
	if u.Host == "" {
		return nil, fmt.Errorf("%q has no host", source)
	}
	values := u.Query()
	values.Set("$filter", fmt.Sprintf("serviceName eq 'Virtual Machines' and priceType eq 'Consumption' and armRegionName eq '%s' "+
		"and armSkuName eq '%s'", quote(region), quote(size)))
	u.RawQuery = values.Encode()
	return u, nil
}

func quote(text string) string { return strings.ReplaceAll(text, "'", "''") }

// follow returns the URL of the next page. It must be at the same host: the port may be written or not.
func follow(from *url.URL, link string) (*url.URL, error) {
	next, err := from.Parse(link)
	if err != nil {
		return nil, fmt.Errorf("the link to the next page of prices: %w", err)
	}
	if next.Scheme != from.Scheme || !strings.EqualFold(next.Hostname(), from.Hostname()) {
		return nil, fmt.Errorf("the link to the next page of prices leads from %s to another host, %s", from.Host, next.Host)
	}
	return next, nil
}

func (c Client) page(ctx context.Context, u *url.URL) (a answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return a, err
	}
	client := c.HTTP
	if client == nil {
		client = http.DefaultClient
	}
	response, err := client.Do(request)
	if err != nil {
		return a, err
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, largest))
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return a, fmt.Errorf("%s: %w", u.Host, err)
	}
	if response.StatusCode != http.StatusOK {
		return a, fmt.Errorf("%s answers %s", u.Host, response.Status)
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return a, fmt.Errorf("%s: the answer is no list of prices: %w", u.Host, err)
	}
	return a, nil
}
