// Package dataplane reads secrets of a cluster's key vault and writes blobs of its storage account. Layer L3.
package dataplane

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
)

// Client asks the data planes of Azure.
type Client struct {
	// Token returns a token for a scope.
	Token func(ctx context.Context, scope string) (string, error)
	// HTTP sends requests.
	HTTP interface {
		Do(r *http.Request) (*http.Response, error)
	}
}

const (
	vaultVersion = "7.4"
	blobVersion  = "2021-08-06"
	storageScope = "https://storage.azure.com/.default"
	mostAnswer   = 1 << 20
)

// do sends a request with a token of a scope. Its error has Azure's answer, but never a body that was sent or a secret.
func (c Client) do(ctx context.Context, scope string, r *http.Request) ([]byte, error) {
	var body bytes.Buffer
	err := c.answer(ctx, scope, r, func(answer io.Reader) error {
		_, err := io.Copy(&body, io.LimitReader(answer, mostAnswer))
		return err
	})
	return body.Bytes(), err
}

// stream is [Client.do] for an answer of any size.
func (c Client) stream(ctx context.Context, scope string, r *http.Request, into io.Writer) error {
	return c.answer(ctx, scope, r, func(answer io.Reader) error {
		_, err := io.Copy(into, answer)
		return err
	})
}

// answer sends a request with a token of a scope, and reads the answer unless Azure refuses.
func (c Client) answer(ctx context.Context, scope string, r *http.Request, read func(io.Reader) error) error {
	token, err := c.Token(ctx, scope)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := c.HTTP.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode < http.StatusBadRequest {
		return read(answer.Body)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, mostAnswer))
	if err != nil {
		return err
	}
	return &StatusError{answer.StatusCode, answer.Header.Get("X-Ms-Error-Code"),
		fmt.Sprintf("%s %s: %s: %.500s", r.Method, r.URL.Path, answer.Status, body)}
}

// StatusError is an answer that refuses a request.
type StatusError struct {
	Status int
	// Code is that of storage, "" for none.
	Code string
	text string
}

func (s *StatusError) Error() string { return s.text }

// Secret reads a secret of a key vault. The scope is that of the vault's cloud, such as https://vault.azure.net/.default.
func (c Client) Secret(ctx context.Context, vaultURL, scope, name string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, vaultURL+"/secrets/"+name+"?api-version="+vaultVersion, http.NoBody)
	if err != nil {
		return "", err
	}
	body, err := c.do(ctx, scope, r)
	if err != nil {
		return "", fmt.Errorf("secret %s of the key vault: %w", name, err)
	}
	var secret struct {
		Value string `json:"value"`
	}
	if err := json.Unmarshal(body, &secret); err != nil || secret.Value == "" {
		return "", fmt.Errorf("secret %s of the key vault: the answer has no value", name)
	}
	return secret.Value, nil
}

// PutBlob writes a file as a new blob and returns its address. It does not replace a blob.
func (c Client) PutBlob(ctx context.Context, containerURL, name string, file *os.File) (string, error) {
	info, err := file.Stat()
	if err != nil {
		return "", err
	}
	address := containerURL + "/" + name
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, address, io.NopCloser(file))
	if err != nil {
		return "", err
	}
	r.ContentLength = info.Size()
	r.Header.Set("x-ms-version", blobVersion)
	r.Header.Set("x-ms-blob-type", "BlockBlob")
	r.Header.Set("If-None-Match", "*")
	if _, err := c.do(ctx, storageScope, r); err != nil {
		return "", fmt.Errorf("blob %s: %w", address, err)
	}
	return address, nil
}
