package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"kaz/internal/arm"
	"kaz/internal/emulator"
	"kaz/internal/emulator/plane/cloud"
	"kaz/internal/emulator/plane/identity"
	"kaz/internal/emulator/plane/metadata"
	"kaz/internal/emulator/plane/proxy"
	"kaz/internal/emulator/plane/registry"
	"kaz/internal/emulator/plane/token"
	"kaz/internal/emulator/providers"
)

// AzureInfo is what a client has to know of a running local Azure. `kaz local
// azure` prints it as one line of JSON.
type AzureInfo struct {
	// ARM and ARMHTTP are the base URLs of Azure Resource Manager over TLS and plain.
	ARM     string `json:"arm"`
	ARMHTTP string `json:"armHTTP"`
	// CAFile is the certificate authority that signed the server's certificate.
	CAFile       string `json:"caFile"`
	Tenant       string `json:"tenant"`
	Subscription string `json:"subscription"`
	// Token is a bearer token with all rights.
	Token string `json:"token"`
	// TokenEndpoint is where ClientID with ClientSecret gets tokens.
	TokenEndpoint string `json:"tokenEndpoint"`
	// MetadataEndpoint describes the cloud to clients that are given ARM only.
	MetadataEndpoint string `json:"metadataEndpoint"`
	// IdentityEndpoint and IdentityHeader are the environment of a managed identity.
	IdentityEndpoint string `json:"identityEndpoint"`
	IdentityHeader   string `json:"identityHeader"`
	ClientID         string `json:"clientId"`
	ClientSecret     string `json:"clientSecret"`
	// Proxy is the URL of the proxy for clients with fixed endpoints, "" for none.
	Proxy string `json:"proxy"`
}

// Azure is a local Azure that serves.
type Azure struct {
	info     AzureInfo
	emulator *emulator.Emulator
	tokens   *token.Service
	owner    token.Application
	system   token.Application // the managed identity of whatever runs on this machine
	managed  planes            // metadata of machines
	log      *slog.Logger

	registries *registry.Service

	servers []*http.Server
	proxy   *proxy.Proxy
	tasks   sync.WaitGroup // goroutines of the servers and of saving
	stop    context.CancelFunc
	state   string
	// requestLog gets a line per request, nil for none.
	requestLog io.Writer
	closers    []func() error
}

// StartAzure starts a local Azure. It serves when the function returns, until
// [Azure.Close]; the end of ctx only interrupts the start.
func StartAzure(ctx context.Context, o AzureOptions) (*Azure, error) {
	s, err := o.read()
	if err != nil {
		return nil, err
	}
	a := &Azure{log: o.Log, state: o.State}
	if a.log == nil {
		a.log = slog.Default()
	}
	if err := a.start(ctx, o, s); err != nil {
		a.state = "" // what was not loaded must not be saved
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

func (a *Azure) start(ctx context.Context, o AzureOptions, s settings) error {
	if err := makePlaceFor(o.State); err != nil {
		return err
	}
	listeners, err := listen(ctx, o)
	if err != nil {
		return err
	}
	for _, l := range listeners.all() {
		a.closers = append(a.closers, ignoreClosed(l.Close))
		if ip, ok := l.Addr().(*net.TCPAddr); ok && !ip.IP.IsLoopback() {
			a.log.Warn("whoever reaches this address owns the local azure", "address", l.Addr().String())
		}
	}
	authority, caFile, err := a.openAuthority(o.CAFile)
	if err != nil {
		return err
	}
	keys, err := a.openKeys(keysFileOf(o.State))
	if err != nil {
		return fmt.Errorf("--state: %w", err)
	}
	a.describe(listeners, caFile, o, s, keys)
	if err := a.startEmulator(o, s, keys); err != nil {
		return err
	}
	if err := a.openRegistries(o); err != nil {
		return err
	}
	t, err := a.tokens.Issue(a.owner, "", cloud.Clouds()[0].Audiences()[0], ownerTokenLifetime)
	if err != nil {
		return err
	}
	a.info.Token = t.Text
	a.serve(listeners, authority, keys)
	return a.announce(o.AnnounceDir)
}

// ownerTokenLifetime is long, because nobody renews a token that was printed.
const ownerTokenLifetime = 30 * 24 * time.Hour

// describe fills in what clients are told, but the token.
func (a *Azure) describe(l *listeners, caFile string, o AzureOptions, s settings, keys *azureKeys) {
	base, plain := "https://"+reachable(l.tls), "http://"+reachable(l.plain)
	a.info = AzureInfo{
		ARM: base, ARMHTTP: plain, CAFile: caFile,
		Tenant: s.identities.tenant(), Subscription: o.subscription(),
		TokenEndpoint:    base + "/" + s.identities.tenant() + "/oauth2/v2.0/token",
		MetadataEndpoint: base + metadata.Path,
		IdentityEndpoint: plain + identity.AppServicePath,
		IdentityHeader:   keys.IdentityHeader,
		ClientID:         keys.ClientID, ClientSecret: keys.ClientSecret,
	}
	if l.proxy != nil {
		a.info.Proxy = "http://" + reachable(l.proxy)
	}
}

func (a *Azure) startEmulator(o AzureOptions, s settings, keys *azureKeys) error {
	a.owner = keys.owner()
	applications := append([]token.Application{a.owner}, s.identities.applications()...)
	var given bool
	if a.system, given = s.identities.system(); !given {
		a.system = keys.system()
		applications = append(applications, a.system)
	}
	var err error
	a.tokens, err = token.New(token.Config{
		Tenant: a.info.Tenant, Guests: s.tenants(), Key: keys.signing, Lifetime: o.TokenLifetime,
		Applications: applications, Issuers: s.issuers, Authority: a.info.ARM, Log: a.log,
		Ports: []string{portOf(a.info.ARM), portOf(a.info.ARMHTTP)},
		World: a.look,
	})
	if err != nil {
		return err
	}
	options := emulator.Options{
		Subscription: a.info.Subscription, Tenant: a.info.Tenant, Subscriptions: s.others, Providers: providers.All(),
		Authenticator: a.tokens, Latency: s.latency, Throttle: s.throttle, AccessControl: s.accessControl,
		Seed: o.Seed, Log: a.log,
	}
	if err := a.openRequestLog(o.RequestLog); err != nil {
		return fmt.Errorf("--request-log: %w", err)
	}
	options.RequestLog = a.requestLog
	if a.emulator, err = emulator.New(options); err != nil {
		return err
	}
	if o.State != "" {
		if err := a.emulator.LoadFile(o.State); err != nil {
			return fmt.Errorf("--state: %w; the file is left as it is", err)
		}
	}
	if err := a.assignRoles(s.identities); err != nil {
		return err
	}
	return a.emulator.SetFaults(s.faults)
}

func (a *Azure) openRequestLog(file string) error {
	if file == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	a.closers = append(a.closers, f.Close)
	a.requestLog = f
	return nil
}

// serve answers requests from now on.
func (a *Azure) serve(l *listeners, authority *azureAuthority, keys *azureKeys) {
	managed := &identity.Service{Tokens: a.tokens, Header: keys.IdentityHeader, System: a.system.ClientID, World: a.look}
	a.managed = planes{handlers: []plane{managed}, otherwise: http.NotFoundHandler(), log: a.requestLog}
	handler := planes{
		handlers: []plane{
			a.tokens,
			&metadata.Service{Authority: a.info.ARM, Registry: a.registries.Suffix},
			managed,
		},
		otherwise: a.emulator,
		log:       a.requestLog,
	}
	a.run(l.tls, a.overRegistries(handler), authority.tlsConfig())
	a.run(envelopes{l.plain}, handler, nil)
	if l.proxy != nil {
		a.proxy = &proxy.Proxy{
			Target: reachable(l.tls), Plain: reachable(l.plain), Registry: a.registries.Answers, Log: a.log,
			Metadata: a.managed,
		}
		a.run(l.proxy, a.proxy, nil)
	}
	// Close ends it, and not the context of the start.
	ctx, cancel := context.WithCancel(context.Background())
	a.stop = cancel
	if a.state != "" {
		a.tasks.Go(func() { a.keepSaving(ctx) })
	}
}

// Info is what clients have to know.
func (a *Azure) Info() AzureInfo { return a.info }

// Door opens an in-process door as the owner of everything.
func (a *Azure) Door() (*arm.Door, error) {
	return arm.New(arm.Config{
		Endpoint:   a.info.ARM,
		Credential: ownerCredential{a},
		Transport:  &http.Client{Transport: a.emulator.Transport()},
		UserAgent:  "kaz-local",
		RetryDelay: 100 * time.Millisecond,
		Logger:     a.log,
	})
}

// Close stops to serve, waits for requests that are being answered, and saves the
// state.
func (a *Azure) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
	defer cancel()
	var errs []error
	var stopping sync.WaitGroup
	for _, s := range a.servers {
		stopping.Go(func() {
			if s.Shutdown(ctx) != nil {
				_ = s.Close() // it took too long
			}
		})
	}
	if a.proxy != nil {
		errs = append(errs, a.proxy.Close(ctx))
	}
	stopping.Wait()
	if a.stop != nil {
		a.stop()
	}
	a.tasks.Wait()
	if a.state != "" {
		errs = append(errs, a.emulator.SaveFile(a.state))
	}
	return errors.Join(append(errs, a.release())...)
}

// closeGrace is how long requests may take to end.
const closeGrace = 10 * time.Second

// release closes what was opened, the last first.
func (a *Azure) release() error {
	var errs []error
	for _, shut := range slices.Backward(a.closers) {
		errs = append(errs, shut())
	}
	a.closers = nil
	return errors.Join(errs...)
}

func ignoreClosed(f func() error) func() error {
	return func() error {
		if err := f(); !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	}
}

// openAuthority opens the certificate authority in the named file, or makes one in
// a file that goes when the local Azure does.
func (a *Azure) openAuthority(file string) (*azureAuthority, string, error) {
	if file == "" {
		dir, err := os.MkdirTemp("", "kaz-azure-")
		if err != nil {
			return nil, "", err
		}
		a.closers = append(a.closers, func() error { return os.RemoveAll(dir) })
		file = filepath.Join(dir, "ca.pem")
	}
	file, err := filepath.Abs(file)
	if err != nil {
		return nil, "", err
	}
	authority, err := openAzureAuthority(file)
	if err != nil {
		return nil, "", fmt.Errorf("--ca-file: %w", err)
	}
	return authority, file, nil
}
