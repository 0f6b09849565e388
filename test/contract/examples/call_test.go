package examples_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"kaz/internal/localazure/core"
)

var contextType = reflect.TypeFor[context.Context]()

// anyToken is a credential that needs no server.
type anyToken struct{}

func (anyToken) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: "any", ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// request is a request as it is sent.
type request struct {
	method, path, version string
	body                  []byte
}

// transport carries the requests of a client.
type transport func(*http.Request) (*http.Response, error)

func (f transport) Do(r *http.Request) (*http.Response, error) { return f(r) }

func (f transport) options() *arm.ClientOptions {
	return &arm.ClientOptions{DisableRPRegistration: true,
		ClientOptions: policy.ClientOptions{Transport: f, Retry: policy.RetryOptions{MaxRetries: -1}}}
}

// method is the method of the example's client.
func (c *call) method(o *arm.ClientOptions) (reflect.Value, error) {
	f, err := c.create(o)
	if err != nil {
		return reflect.Value{}, err
	}
	create := reflect.ValueOf(f).MethodByName("New" + c.Client)
	if !create.IsValid() || create.Type().NumIn() > 0 {
		return reflect.Value{}, fmt.Errorf("the module has no client %s", c.Client)
	}
	method := create.Call(nil)[0].MethodByName(c.Method)
	if !method.IsValid() {
		return reflect.Value{}, fmt.Errorf("%s has no method %s", c.Client, c.Method)
	}
	return method, nil
}

// resultOf is the type of what a method returns in the end: at once, by a poller, or by a pager.
func resultOf(method reflect.Type) reflect.Type {
	out := method.Out(0)
	for _, name := range []string{"PollUntilDone", "NextPage"} {
		if m, ok := out.MethodByName(name); ok {
			out = m.Type.Out(0)
		}
	}
	return out
}

// do calls the method, and waits for its result. Of a pager it returns the first page.
func (c *call) do(ctx context.Context, by transport) (reflect.Value, error) {
	method, err := c.method(by.options())
	if err != nil {
		return reflect.Value{}, err
	}
	arguments := c.arguments
	if method.Type().NumIn() > len(arguments) {
		arguments = append([]reflect.Value{reflect.ValueOf(ctx)}, arguments...)
	}
	result, err := returned(method.Call(arguments))
	if err != nil {
		return result, err
	}
	if poll := result.MethodByName("PollUntilDone"); poll.IsValid() {
		result, err = returned(poll.Call([]reflect.Value{reflect.ValueOf(ctx), reflect.Zero(poll.Type().In(1))}))
		if err != nil {
			return result, err
		}
	}
	if next := result.MethodByName("NextPage"); next.IsValid() {
		return returned(next.Call([]reflect.Value{reflect.ValueOf(ctx)}))
	}
	return result, nil
}

func returned(values []reflect.Value) (reflect.Value, error) {
	if len(values) == 1 {
		return values[0], nil
	}
	err, _ := reflect.TypeAssert[error](values[1])
	return values[0], err
}

var errCaptured = errors.New("captured")

// capture notes the request of the call, without sending it.
func (c *call) capture() error {
	_, err := c.do(context.Background(), func(r *http.Request) (*http.Response, error) {
		c.sent = request{method: r.Method, path: r.URL.Path, version: r.URL.Query().Get("api-version")}
		if r.Body != nil {
			text, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			c.sent.body = text
		}
		return nil, errCaptured
	})
	if !errors.Is(err, errCaptured) {
		return fmt.Errorf("no request: %w", err)
	}
	for _, v := range c.arguments {
		instances(v)
	}
	if instance := scaleSetVM.FindStringSubmatch(c.sent.path); instance != nil && instance[2] != "0" {
		for _, v := range c.arguments {
			if v.Kind() == reflect.String && v.String() == instance[2] && v.CanSet() {
				v.SetString("0")
			}
		}
		c.sent.path = scaleSetVM.ReplaceAllString(c.sent.path, "${1}0$3")
	}
	return nil
}

// instances replaces the ids of instances in an argument by those that a scale set has. The examples have made up ones.
func instances(v reflect.Value) {
	if v = inside(v); v.Kind() != reflect.Struct {
		return
	}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if !field.IsExported() {
			continue
		}
		if ids, ok := reflect.TypeAssert[[]*string](v.Field(i)); ok && field.Name == "InstanceIDs" {
			for i, id := range ids {
				if id != nil && *id != "*" {
					*id = strconv.Itoa(i)
				}
			}
		} else {
			instances(v.Field(i))
		}
	}
}

var (
	anySubscription = regexp.MustCompile(`(?i)/subscriptions/[^/]+`)
	scaleSetVM      = regexp.MustCompile(`(?i)(/virtualMachineScaleSets/[^/]+/virtualMachines/)([^/]+)(/|$)`)
	placeholder     = regexp.MustCompile(`\{+([\w-]+)\}+`)
)

// impossible are the texts of examples that Azure takes nowhere, with others that it takes: names of zones with one label, and the name
// of a user that no machine may have.
var impossible = map[string]string{"zone1": "zone1.com", "zone2": "zone2.com", "admin": "kazadmin", "{ssh-rsa public key}": publicKey,
	"{ssh-ed25519 public key}": publicKey}

// publicKey is a key of the type Ed25519 as SSH writes it, with 32 bytes of no meaning.
var publicKey = "ssh-ed25519 " + base64.StdEncoding.EncodeToString([]byte("\x00\x00\x00\x0bssh-ed25519\x00\x00\x00 minimal-key-of-an-example-32-byt"))

// spelled is a text of an example as it can be true here: ids are in the subscription that exists, and names that stand for names, such
// as {vm-name}, are names.
func spelled(text string) string {
	text = strings.ReplaceAll(text, `\$ref`, "$ref")
	if possible, ok := impossible[text]; ok {
		return possible
	}
	text = placeholder.ReplaceAllString(text, "$1")
	for is, possible := range impossible {
		text = strings.ReplaceAll(text, "/"+is, "/"+possible)
	}
	if !strings.HasPrefix(strings.ToLower(text), "/subscriptions/") && !strings.HasPrefix(strings.ToLower(text), "subscriptions/") {
		return text
	}
	return anySubscription.ReplaceAllString("/"+strings.TrimPrefix(text, "/"), "/subscriptions/"+core.DefaultSubscription)
}

// send carries a request that is no client's to the local Azure.
func send(ctx context.Context, e *core.Emulator, r request) (status int, text []byte, err error) {
	status, text, _, err = exchange(ctx, e, r)
	return status, text, err
}

// exchange sends a request, and returns the headers of the reply, too.
func exchange(ctx context.Context, e *core.Emulator, r request) (status int, text []byte, headers http.Header, err error) {
	url := "https://management.azure.com" + r.path + "?api-version=" + r.version
	hr, err := http.NewRequestWithContext(ctx, r.method, url, bytes.NewReader(r.body))
	if err != nil {
		return 0, nil, nil, err
	}
	hr.Header.Set("Content-Type", "application/json")
	hr.Header.Set("Authorization", "Bearer any")
	reply, err := e.Transport().RoundTrip(hr)
	if err != nil {
		return 0, nil, nil, err
	}
	defer reply.Body.Close()
	text, err = io.ReadAll(reply.Body)
	return reply.StatusCode, text, reply.Header, err
}
