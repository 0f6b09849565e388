package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"kaz/internal/azure"
)

// Client reads and writes the resources of a running local Azure.
type Client struct {
	info Info
	http *http.Client
}

// New returns a client of a local Azure. The caller closes it.
func New(info Info) (*Client, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if info.CAFile != "" {
		text, err := os.ReadFile(info.CAFile)
		if err != nil {
			return nil, fmt.Errorf("certificate authority of the local Azure: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("certificate authority of the local Azure: no certificate in %s", info.CAFile)
		}
	}
	return &Client{info: info, http: &http.Client{
		Timeout:   time.Minute,
		Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}, // a server on this machine needs no proxy
	}}, nil
}

// Close closes the idle connections of the client.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// apiVersion is sent with every request. The local Azure accepts any.
const apiVersion = "2025-05-01"

// responseError is an error response of the local Azure.
type responseError struct {
	status        int
	code, message string
}

func (e *responseError) Error() string {
	return fmt.Sprintf("%s: %s (%d)", e.code, e.message, e.status)
}

// get reads a path, or the link to the next page of a list, into a value.
func (c *Client) get(ctx context.Context, link string, into any) error {
	answer, err := c.send(ctx, http.MethodGet, link, nil)
	if err != nil {
		return err
	}
	return json.Unmarshal(answer.text, into)
}

// response is a response of the local Azure that is no error.
type response struct {
	status int
	header http.Header
	text   []byte
}

// send sends a request to a path, or to a link.
func (c *Client) send(ctx context.Context, method, link string, document []byte) (response, error) {
	return c.sendAs(ctx, c.info.Token, method, link, document)
}

// sendAs is send with a token.
func (c *Client) sendAs(ctx context.Context, token, method, link string, document []byte) (response, error) {
	if strings.HasPrefix(link, "/") {
		link = c.info.ARM + (&url.URL{Path: link, RawQuery: "api-version=" + apiVersion}).String()
	}
	r, err := http.NewRequestWithContext(ctx, method, link, bytes.NewReader(document))
	if err != nil {
		return response{}, err
	}
	if method != http.MethodGet {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("User-Agent", "kaz-local-azure")
	resp, err := c.http.Do(r)
	if err != nil {
		return response{}, fmt.Errorf("ask the local Azure: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return response{}, fmt.Errorf("ask the local Azure: %w", err)
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return response{}, readError(resp, text)
	}
	return response{resp.StatusCode, resp.Header, text}, nil
}

func readError(resp *http.Response, text []byte) error {
	var body struct {
		Error struct{ Code, Message string } `json:"error"`
	}
	if json.Unmarshal(text, &body) != nil || body.Error.Code == "" {
		body.Error.Code, body.Error.Message = "HTTP", resp.Status
	}
	return &responseError{resp.StatusCode, body.Error.Code, body.Error.Message}
}

// Exists reports whether the local Azure has a resource.
func (c *Client) Exists(ctx context.Context, id azure.ID) (bool, error) {
	err := c.get(ctx, string(id), &map[string]any{})
	if refused, ok := errors.AsType[*responseError](err); ok && refused.status == http.StatusNotFound {
		return false, nil
	}
	return err == nil, err
}

// Put creates or replaces a resource and returns it when its provisioning has ended.
func (c *Client) Put(ctx context.Context, id string, document []byte) (map[string]any, error) {
	if _, err := azure.ParseID(id); err != nil {
		return nil, err
	}
	tick := time.NewTicker(provisioningPoll)
	defer tick.Stop()
	if err := c.write(ctx, tick.C, id, document); err != nil {
		return nil, err
	}
	for {
		doc := map[string]any{}
		if err := c.get(ctx, id, &doc); err != nil {
			return nil, err
		}
		properties, _ := doc["properties"].(map[string]any)
		switch state, _ := properties["provisioningState"].(string); state {
		case "Creating", "Updating":
		case "Failed", "Canceled":
			return nil, fmt.Errorf("%s: the provisioning state in the local Azure is %s", id, state)
		default:
			return doc, nil
		}
		if err := next(ctx, tick.C); err != nil {
			return nil, err
		}
	}
}

// write puts a document and waits until the operation has ended that the response names, if it names one.
func (c *Client) write(ctx context.Context, tick <-chan time.Time, id string, document []byte) error {
	answer, err := c.send(ctx, http.MethodPut, id, document)
	if err != nil {
		return err
	}
	if operation := answer.header.Get("Azure-AsyncOperation"); operation != "" {
		return c.waitOperation(ctx, tick, id, operation)
	}
	for result := answer.header.Get("Location"); answer.status == http.StatusAccepted && result != ""; {
		if err := next(ctx, tick); err != nil {
			return err
		}
		if answer, err = c.send(ctx, http.MethodGet, result, nil); err != nil {
			return err
		}
	}
	return nil
}

// waitOperation waits until an operation on a resource has ended.
func (c *Client) waitOperation(ctx context.Context, tick <-chan time.Time, id, operation string) error {
	for {
		var answer struct {
			Status string
			Error  struct{ Code, Message string }
		}
		if err := c.get(ctx, operation, &answer); err != nil {
			return err
		}
		switch answer.Status {
		case "Succeeded":
			return nil
		case "Failed", "Canceled":
			return fmt.Errorf("%s: the operation in the local Azure has the state %s: %s: %s", id, answer.Status, answer.Error.Code,
				answer.Error.Message)
		}
		if err := next(ctx, tick); err != nil {
			return err
		}
	}
}

// next waits for the next tick.
func next(ctx context.Context, tick <-chan time.Time) error {
	select {
	case <-tick:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// provisioningPoll is the interval at which Put reads the provisioning state.
const provisioningPoll = 200 * time.Millisecond
