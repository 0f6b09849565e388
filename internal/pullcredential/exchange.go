package pullcredential

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"kaz/internal/azure/secret"
	"kaz/internal/pause"
)

// tokenUser is the user name of a login with a token as its password.
const tokenUser = "00000000-0000-0000-0000-000000000000"

const (
	userAgent     = "kubernetes-credentialprovider-acr"
	largestAnswer = 1 << 20
	tries         = 3
)

// exchange exchanges a token of Entra ID for a login of the registry at host. It first reads the
// registry's challenge, which shows whether host is an Azure registry.
func (p *Provider) exchange(ctx context.Context, host string, identity Identity) (Login, error) {
	name, err := p.challenge(ctx, host)
	if err != nil {
		return Login{}, err
	}
	token, err := identity.Token(ctx, Scope)
	if err != nil {
		return Login{}, fmt.Errorf("token for registry %s: %w", host, err)
	}
	form := url.Values{"grant_type": {"access_token"}, "service": {name}, "access_token": {token}}
	if identity.Tenant != "" {
		form.Set("tenant", identity.Tenant)
	}
	status, _, body, err := p.send(ctx, http.MethodPost, "https://"+host+"/oauth2/exchange", form)
	if err != nil {
		return Login{}, fmt.Errorf("exchange a token with registry %s: %w", host, err)
	}
	if status != http.StatusOK {
		return Login{},
			fmt.Errorf("registry %s responded with status code %d to the exchange of a token of %s%s", host, status, identity.Name,
				said(body, token))
	}
	var answer struct {
		RefreshToken secret.Text `json:"refresh_token"`
	}
	if json.Unmarshal(body, &answer) != nil || answer.RefreshToken.IsZero() {
		return Login{}, fmt.Errorf("registry %s answered the exchange of a token without a refresh_token", host)
	}
	return NewLogin(tokenUser, answer.RefreshToken), nil
}

// challenge reads the registry's challenge.
func (p *Provider) challenge(ctx context.Context, host string) (string, error) {
	status, header, _, err := p.send(ctx, http.MethodGet, "https://"+host+"/v2/", nil)
	if err != nil {
		return "", fmt.Errorf("ask registry %s for its challenge: %w", host, err)
	}
	if status != http.StatusUnauthorized {
		return "", fmt.Errorf("registry %s did not issue a valid AAD challenge, status: %d", host, status)
	}
	return service(host, header)
}

// send sends a request and retries if the registry is unreachable or busy.
func (p *Provider) send(ctx context.Context, method, address string, form url.Values) (int, http.Header, []byte, error) {
	for try := 1; ; try++ {
		status, header, body, err := p.once(ctx, method, address, form)
		passing := err != nil || status == http.StatusTooManyRequests || status >= http.StatusInternalServerError
		if !passing || try == tries || ctx.Err() != nil {
			return status, header, body, err
		}
		if pause.For(ctx, delay(try, header)) != nil {
			return status, header, body, err
		}
	}
}

// delay returns the delay before a retry: the registry's Retry-After, limited because a kubelet is
// waiting.
func delay(try int, header http.Header) time.Duration {
	const first, longest = 500 * time.Millisecond, 5 * time.Second
	if seconds, err := strconv.ParseUint(header.Get("Retry-After"), 10, 16); err == nil {
		return min(time.Duration(seconds)*time.Second, longest)
	}
	return first * time.Duration(try)
}

func (p *Provider) once(ctx context.Context, method, address string, form url.Values) (int, http.Header, []byte, error) {
	var content io.Reader
	if form != nil {
		content = strings.NewReader(form.Encode())
	}
	r, err := http.NewRequestWithContext(ctx, method, address, content)
	if err != nil {
		return 0, nil, nil, err
	}
	r.Header.Set("User-Agent", userAgent)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := p.client().Do(r)
	if err != nil {
		return 0, nil, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, largestAnswer))
	if err != nil {
		return 0, nil, nil, err
	}
	return resp.StatusCode, resp.Header, body, nil
}

// client does not follow redirects, so that tokens are only sent to the intended host.
func (p *Provider) client() *http.Client {
	c := http.Client{}
	if p.Client != nil {
		c = *p.Client
	}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &c
}

var unprintable = regexp.MustCompile(`[^ -~]+`)

// said returns the error in a response, as a suffix of a message. It removes the token, which the
// server may have repeated.
func said(body []byte, token string) string {
	var answer struct {
		Errors []struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"errors"`
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return ""
	}
	text := strings.TrimSpace(answer.Error + " " + answer.Description)
	if len(answer.Errors) > 0 {
		text = answer.Errors[0].Code + ": " + answer.Errors[0].Message
	}
	if text == "" {
		return ""
	}
	if token != "" {
		text = strings.NewReplacer(token, "(secret)", url.QueryEscape(token), "(secret)").Replace(text)
	}
	return ": " + shorten(unprintable.ReplaceAllString(text, " "))
}
