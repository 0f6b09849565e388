package arm

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// Discover reads the document in which a Resource Manager describes its cloud, at a URL such as
// [kaz/internal/cloudconfig.Config.MetadataURL] gives. It sends no token, because the document says
// where tokens come from. A nil transport is that of [NewTransport]. Call it once: the document does
// not change.
func Discover(ctx context.Context, transport policy.Transporter, url string) ([]byte, error) {
	const (
		longest = 30 * time.Second
		largest = 1 << 20
	)
	if transport == nil {
		client := NewTransport()
		defer client.CloseIdleConnections()
		transport = client
	}
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("discover the cloud at %q: %w", url, err)
	}
	resp, err := transport.Do(req)
	if err != nil {
		return nil, fmt.Errorf("discover the cloud: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, largest+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("discover the cloud at %s: %w", url, err)
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("discover the cloud at %s: HTTP %d %s", url, resp.StatusCode, http.StatusText(resp.StatusCode))
	case len(body) > largest:
		return nil, fmt.Errorf("discover the cloud at %s: the answer is larger than %d bytes", url, largest)
	case !json.Valid(body):
		return nil, fmt.Errorf("discover the cloud at %s: the answer is not JSON", url)
	}
	return body, nil
}
