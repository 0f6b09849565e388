package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"kaz/internal/arm"
	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/client"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/inventory"
	"kaz/internal/localazure/plane/blob"
	"kaz/internal/localazure/plane/cloud"
	"kaz/internal/localazure/plane/file"
	"kaz/internal/localazure/plane/identity"
	"kaz/internal/localazure/plane/metadata"
	"kaz/internal/localazure/plane/proxy"
	"kaz/internal/localazure/plane/queue"
	"kaz/internal/localazure/plane/registry"
	"kaz/internal/localazure/plane/retail"
	"kaz/internal/localazure/plane/table"
	"kaz/internal/localazure/plane/token"
	"kaz/internal/localazure/plane/traffic"
	"kaz/internal/localazure/plane/vault"
	"kaz/internal/localazure/plane/wire"
	"kaz/internal/localazure/providers"
	"kaz/internal/localazure/web"
)

// Server is a local Azure that serves.
type Server struct {
	info       client.Info
	emulator   *core.Emulator
	tokens     *token.Service
	owner      token.Application // has all rights
	system     token.Application // the managed identity of programs on this machine
	managed    *identity.Service // the instance metadata service
	registries *registry.Service
	files      *file.Service
	vaults     *vault.Service
	blobs      *blob.Service
	queues     *queue.Service
	tables     *table.Service
	wire       *wire.Service
	admin      *admin
	recorder   *web.Recorder // of writes and requests, for the web page
	web        *web.Site
	consoleLog func(name string) string // nil if no machine boots
	requestLog io.Writer                // receives a line for each request
	log        *slog.Logger

	http    httpServers
	saver   *saver // nil without a state file
	closers closers
	tasks   sync.WaitGroup
	closing chan struct{} // closed by Close
}

// Start starts a local Azure, which serves when Start returns, until [Server.Close]. The end of ctx interrupts only the
// start.
func Start(ctx context.Context, o Options) (*Server, error) {
	s, err := o.read()
	if err != nil {
		return nil, err
	}
	log := cmp.Or(o.Log, slog.Default())
	a := &Server{log: log, http: httpServers{log: log}, consoleLog: o.ConsoleLog, closing: make(chan struct{}),
		recorder: web.NewRecorder()}
	if err := a.start(ctx, o, s); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// start opens the files that the options name before it takes a port: a mistake in a name costs nothing. The directory of the state comes
// first, because other files may be there, and only its owner may read it.
func (a *Server) start(ctx context.Context, o Options, s settings) error {
	if err := makeStateDir(o.State); err != nil {
		return err
	}
	authority, caFile, err := a.openAuthority(o.CAFile)
	if err != nil {
		return err
	}
	file, err := a.openRequestLog(o.RequestLog)
	if err != nil {
		return fmt.Errorf("--request-log: %w", err)
	}
	if a.requestLog = a.recorder; file != nil {
		a.requestLog = io.MultiWriter(a.recorder, file)
	}
	listeners, err := a.listen(ctx, o)
	if err != nil {
		return err
	}
	keys, unlock, err := lockKeys(keysFileOf(o.State))
	if err != nil {
		return fmt.Errorf("--state: %w", err)
	}
	a.closers.add(unlock)
	a.describe(listeners, caFile, o, s, keys)
	if err := a.startEmulator(o, s, keys); err != nil {
		return err
	}
	if err := a.openPlanes(ctx, o); err != nil {
		return err
	}
	t, err := a.tokens.Issue(a.owner, "", cloud.Clouds()[0].Audiences()[0], ownerTokenLifetime)
	if err != nil {
		return err
	}
	a.info.Token, a.info.AdminToken = t.Text, rand.Text()
	a.admin = &admin{server: a, token: a.info.AdminToken, since: time.Now(), reset: a.clearer(o, s)}
	if err := a.openWeb(o, s); err != nil {
		return err
	}
	a.serve(listeners, authority, keys)
	if err := serveEmulated(ctx, a, o); err != nil {
		return err
	}
	if o.State != "" {
		a.saver = startSaver(a.emulator, o.State, a.log)
	}
	return a.announce(o)
}

// openPlanes opens the data planes with content of their own.
func (a *Server) openPlanes(ctx context.Context, o Options) error {
	if err := a.openRegistries(o); err != nil {
		return err
	}
	if err := a.openQueues(o); err != nil {
		return err
	}
	if err := a.openBlobs(o); err != nil {
		return err
	}
	if err := a.openTables(o); err != nil {
		return err
	}
	if err := a.openFiles(o); err != nil {
		return err
	}
	if err := a.startNameServer(ctx, o); err != nil {
		return err
	}
	a.closers.add(traffic.Start(ctx, traffic.Options{Azure: a.emulator, Log: a.log}).Close)
	return a.startShares(ctx, o)
}

// ownerTokenLifetime is long because clients cannot renew a printed token.
const ownerTokenLifetime = 30 * 24 * time.Hour

// listen opens the ports, and warns about ports that other machines can reach.
func (a *Server) listen(ctx context.Context, o Options) (*listeners, error) {
	listeners, err := listen(ctx, o)
	if err != nil {
		return nil, err
	}
	for _, l := range listeners.all() {
		a.closers.add(ignoreClosed(l.Close))
		if ip, ok := l.Addr().(*net.TCPAddr); ok && !ip.IP.IsLoopback() {
			a.log.Warn("every client that reaches this address has full access to the local azure", "address", l.Addr().String())
		}
	}
	return listeners, nil
}

// describe fills in what clients need to know, except the token.
func (a *Server) describe(l *listeners, caFile string, o Options, s settings, keys *keys) {
	base, plain := "https://"+reachable(l.tls), "http://"+reachable(l.plain)
	tenant := s.identities.TenantID()
	a.info = client.Info{
		ARM: base, ARMHTTP: plain, CAFile: caFile,
		Tenant: tenant, Subscription: o.subscription(),
		TokenEndpoint:    base + "/" + tenant + "/oauth2/v2.0/token",
		MetadataEndpoint: base + metadata.Path,
		IdentityEndpoint: plain + identity.AppServicePath,
		IdentityHeader:   keys.IdentityHeader,
		ClientID:         keys.ClientID, ClientSecret: keys.ClientSecret,
		Boots: o.Boots,
	}
	if l.proxy != nil {
		a.info.Proxy = "http://" + reachable(l.proxy)
	}
}

func (a *Server) startEmulator(o Options, s settings, keys *keys) error {
	if err := a.startTokens(o, s, keys); err != nil {
		return err
	}
	var err error
	a.emulator, err = core.New(core.Options{
		Subscription: a.info.Subscription, Tenant: a.info.Tenant, Subscriptions: s.others, Users: s.identities.Users,
		Providers: providers.All(), Authenticator: a.tokens, Latency: s.latency, Throttle: s.throttle, Quotas: s.quotas,
		AccessControl: s.accessControl, Boots: o.Boots, Seed: o.Seed, Log: a.log, RequestLog: a.requestLog, Download: a.download,
		Written: a.recorder.Written,
	})
	if err != nil {
		return err
	}
	if o.State != "" {
		if err := a.emulator.Open(o.State); err != nil {
			return fmt.Errorf("--state: %w; the file is unchanged", err)
		}
		a.closers.add(a.emulator.Close)
	}
	if err := a.assignRoles(s.identities); err != nil {
		return err
	}
	return a.emulator.SetFaults(s.faults)
}

// startTokens starts the token service with the applications of the keys and of the identities file.
func (a *Server) startTokens(o Options, s settings, keys *keys) error {
	a.owner = keys.owner()
	applications := append([]token.Application{a.owner}, s.identities.All()...)
	var inFile bool
	if a.system, inFile = s.identities.System(); !inFile {
		a.system = keys.system()
		applications = append(applications, a.system)
	}
	var err error
	a.tokens, err = token.New(token.Config{
		Tenant: a.info.Tenant, Guests: s.tenants(), Key: keys.signing, Lifetime: o.TokenLifetime,
		Applications: applications, Issuers: s.issuers, Authority: a.info.ARM, Log: a.log,
		Ports: []string{portOf(a.info.ARM), portOf(a.info.ARMHTTP)},
		World: a.Look,
	})
	return err
}

// openRequestLog opens the request log, nil for an empty name. Only its owner may read it: the paths of requests can have secrets.
func (a *Server) openRequestLog(file string) (io.Writer, error) {
	if file == "" {
		return nil, nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	if err := restrict(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	a.closers.add(f.Close)
	return f, nil
}

// restrict takes the rights of others from a file that an earlier version made. What is no file, such as a terminal, stays.
func restrict(f *os.File) error {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	return f.Chmod(0o600)
}

// login is the address of the login, as data planes name it.
func (a *Server) login() string {
	return "https://" + cloud.Clouds()[0].Logins[0] + "/" + a.info.Tenant
}

// serve begins to answer requests.
func (a *Server) serve(l *listeners, authority *authority, keys *keys) {
	a.managed = &identity.Service{Tokens: a.tokens, Header: keys.IdentityHeader, Host: isHost, System: a.system.ClientID,
		Attest: authority.attest, World: a.Look}
	handler := planes{
		handlers: []plane{
			a.tokens,
			&metadata.Service{Authority: a.info.ARM, Registry: a.registries.Suffix},
			a.managed,
			&retail.Service{},
			health{a},
			a.admin,
		},
		otherwise: a.emulator,
		log:       a.requestLog,
		unlogged:  a.web,
	}
	a.vaults = &vault.Service{Authenticate: a.tokens.AuthenticateFor, Azure: a.emulator, Authority: a.login()}
	a.wire = &wire.Service{Do: a.emulator.Do, Log: a.log}
	a.http.serve(l.tls, a.withHosts(handler, a.hosted()...), authority.tlsConfig())
	a.http.serve(envelopes{l.plain}, a.withHosts(handler, a.files), nil)
	if l.proxy != nil {
		a.http.proxy = &proxy.Proxy{
			Target: reachable(l.tls), Plain: reachable(l.plain), Registry: a.answersHost, Log: a.log,
		}
		a.http.serve(l.proxy, a.http.proxy, nil)
	}
}

// announce writes the announcement files. Close removes them.
func (a *Server) announce(o Options) error {
	var files []string
	if o.AnnounceDir != "" {
		files = append(files, client.FileInDir(o.AnnounceDir))
	}
	if o.State != "" { // last, because a start in the background waits for this file
		files = append(files, client.FileBeside(o.State))
	}
	for _, file := range files {
		if err := client.Announce(file, a.info); err != nil {
			return err
		}
		a.closers.add(func() error { return os.Remove(file) })
	}
	return nil
}

// Info returns what clients need to know.
func (a *Server) Info() client.Info { return a.info }

// Credential returns a credential with all rights.
func (a *Server) Credential() azcore.TokenCredential { return ownerCredential{a} }

// Client returns an in-process ARM client with all rights.
func (a *Server) Client() (*arm.Client, error) {
	return arm.New(arm.Config{
		Endpoint:   a.info.ARM,
		Credential: a.Credential(),
		Transport:  &http.Client{Transport: a.emulator.Transport()},
		UserAgent:  "kaz-local",
		RetryDelay: 100 * time.Millisecond,
		Logger:     a.log,
	})
}

// Emulator returns the emulator that holds the resources.
func (a *Server) Emulator() *core.Emulator { return a.emulator }

// Look calls f with the resources, and does nothing before the emulator has started.
func (a *Server) Look(f func(w behaviour.World)) {
	if a.emulator != nil {
		a.emulator.Look(f)
	}
}

// OwnsHost reports whether a host name belongs to Azure and is served here.
func (a *Server) OwnsHost(host string) bool {
	_, known := cloud.OfHost(host)
	return known || a.answersHost(host)
}

// hosted are the data planes that have hosts of their own.
func (a *Server) hosted() []hosted {
	return []hosted{a.registries, a.files, a.vaults, a.blobs, a.queues, a.tables}
}

// answersHost reports whether a host belongs to a data plane.
func (a *Server) answersHost(host string) bool {
	return slices.ContainsFunc(a.hosted(), func(plane hosted) bool { return plane.Answers(host) })
}

// Metadata returns the instance metadata service, as 169.254.169.254 answers it to the machine with a network interface.
func (a *Server) Metadata(nic azure.ID) http.Handler {
	owner := a.machineOf(nic)
	if owner == "" {
		return http.NotFoundHandler()
	}
	return logged(a.managed.Machine(owner), a.requestLog)
}

// isHost reports whether the host of a request is an address of this server: the loopback, the address at which the request arrived,
// or that of the instance metadata service. Another name may be one of a web page.
func isHost(r *http.Request) bool {
	host := (&url.URL{Host: r.Host}).Hostname()
	if strings.EqualFold(host, "localhost") || host == identity.Address {
		return true
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ip.IsLoopback() || local != nil && local.AddrPort().Addr().Unmap() == ip.Unmap()
}

// WireServer returns the wire server, as 168.63.129.16 answers it to the machine with a network interface.
func (a *Server) WireServer(nic azure.ID) http.Handler {
	owner := a.machineOf(nic)
	if owner == "" {
		return http.NotFoundHandler()
	}
	return a.wire.Handler(owner)
}

// machineOf returns the machine with a network interface, "" for none.
func (a *Server) machineOf(nic azure.ID) azure.ID {
	if owner := nic.Parent(); inventory.IsMachine(owner) {
		return owner
	}
	var owner azure.ID
	a.Look(func(w behaviour.World) {
		doc, _ := w.Get(nic)
		owner = behaviour.RefID(doc, "properties.virtualMachine")
		for _, r := range w.Referrers(nic) {
			if inventory.IsMachine(r.Resource) {
				owner = r.Resource
			}
		}
	})
	return owner
}

// Close stops serving after the requests in flight, and saves the state.
func (a *Server) Close() error {
	close(a.closing)
	err := a.http.shutdown()
	a.tasks.Wait()
	if a.saver != nil {
		err = errors.Join(err, a.saver.close())
	}
	return errors.Join(err, a.closers.close())
}

// openAuthority opens the certificate authority in a file, or creates one. An empty name is a temporary file that Close
// removes.
func (a *Server) openAuthority(file string) (*authority, string, error) {
	if file == "" {
		dir, err := os.MkdirTemp("", "kaz-azure-")
		if err != nil {
			return nil, "", err
		}
		a.closers.add(func() error { return os.RemoveAll(dir) })
		file = filepath.Join(dir, "ca.pem")
	}
	file, err := filepath.Abs(file)
	if err != nil {
		return nil, "", err
	}
	authority, err := openAuthority(file)
	if err != nil {
		return nil, "", fmt.Errorf("--ca-file: %w", err)
	}
	return authority, file, nil
}
