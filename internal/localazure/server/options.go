package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"kaz/internal/host/userfile"
	"kaz/internal/key/spelling"
	"kaz/internal/localazure/behaviour/compute/vm"
	"kaz/internal/localazure/client"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/identities"
	"kaz/internal/localazure/plane/token"
	"kaz/internal/localazure/web"
)

// Options are the flags of `kaz local azure`. The zero value serves on free ports of the loopback address and keeps no
// state.
type Options struct {
	// Address and HTTPAddress are the IP:PORT to serve at with and without TLS, ProxyAddress is that of the proxy, "" for no
	// proxy. Port 0 is any free port.
	Address, HTTPAddress, ProxyAddress string
	// DNSAddress is the IP:PORT of the name server of public zones, over UDP and TCP, "" for none.
	DNSAddress string
	// SMBAddress and NFSAddress are the IP:PORT at which file shares are served over SMB and NFS, "" for not serving them.
	SMBAddress, NFSAddress string
	// DevelopmentStorage is the IP:PORT of blobs for clients of storage emulators, "" for none. Queues and tables have the next ports.
	DevelopmentStorage string
	// CAFile is the file of the certificate authority. The file of its key is beside it.
	CAFile string
	// Subscription is the id of the subscription. OtherSubscriptions are the ids of further subscriptions, each ID, or
	// ID=TENANT in another tenant.
	Subscription       string
	OtherSubscriptions []string
	// Latency is "azure", "off" or a factor; Throttle "azure" or "off"; AccessControl
	// "on" or "off". All are off when empty.
	Latency, Throttle, AccessControl string
	// Identities and Faults are files to read. RequestLog is a file to append to. State is a file to read at the start and
	// to write after changes.
	Identities, Faults, RequestLog, State string
	// Quotas are limits of vCPUs in each region, as NAME=N: "cores=100", "standardDSv5Family=20".
	Quotas []string
	// RegistrySuffix is the domain of registries for clients that use the address of this local Azure, azurecr.localhost
	// if empty.
	RegistrySuffix string
	// Boots says that the caller boots machines with custom data, so that operations wait for them.
	Boots bool
	// ConsoleLog returns the file with what the console of a machine has shown, by the computer name. It is nil if none boots.
	ConsoleLog func(name string) string
	// Seed is the seed of random latencies, ids and addresses.
	Seed uint64
	// TokenLifetime is the lifetime of tokens of service principals, 0 for an hour.
	TokenLifetime time.Duration
	// WebWrite lets the web page add and remove fault rules. Otherwise it only shows.
	WebWrite bool
	// Why explains objects of the cluster that runs on this local Azure, for the web page. Nil says that there is none.
	Why web.Explainer
	// AnnounceDir is a directory for a file by which other commands find this local Azure, "" for none. Another such file
	// is beside State.
	AnnounceDir string
	// Log is the logger, slog.Default if nil.
	Log *slog.Logger
}

// settings are the validated options.
type settings struct {
	latency       float64
	throttle      bool
	quotas        map[string]int
	accessControl bool
	identities    identities.File
	issuers       []token.Issuer
	faults        []core.Fault
	others        []core.Subscription
}

func (o *Options) subscription() string {
	return cmp.Or(o.Subscription, core.DefaultSubscription)
}

// Check validates the options and the files they name, and reports all problems at once.
func (o *Options) Check() error {
	_, err := o.read()
	return err
}

// read validates the options, reads their files, and reports all problems at once.
func (o *Options) read() (settings, error) {
	var s settings
	var problems []error
	note := func(err error) {
		if err != nil {
			problems = append(problems, err)
		}
	}
	for _, a := range append(o.addresses(), o.nameServerAddress()...) {
		note(a.check())
	}
	if !identities.IsGUID(o.subscription()) {
		note(fmt.Errorf("--subscription %s: want a GUID such as %s", o.Subscription, core.DefaultSubscription))
	}
	_, err := o.storageAddresses()
	note(err)
	s.others, err = o.otherSubscriptions()
	note(err)
	s.latency, err = parseLatency(o.Latency)
	note(err)
	s.throttle, err = choose("--throttle", o.Throttle, throttleOn)
	note(err)
	s.accessControl, err = choose("--access-control", o.AccessControl, "on")
	note(err)
	s.identities, s.issuers, err = identities.Read(o.Identities)
	note(err)
	s.faults, err = readFaults(o.Faults)
	note(err)
	s.quotas, err = parseQuotas(o.Quotas)
	note(err)
	note(o.checkRegistrySuffix())
	note(o.checkShares())
	return s, errors.Join(problems...)
}

// parseQuotas parses limits of vCPUs.
func parseQuotas(given []string) (map[string]int, error) {
	quotas, known := map[string]int{}, vm.Quotas()
	var problems []error
	for _, text := range given {
		name, limit, found := strings.Cut(text, "=")
		n, err := strconv.Atoi(limit)
		if !found || name == "" || err != nil || n < 0 {
			problems = append(problems, fmt.Errorf("--quota %s: want NAME=N, such as cores=100 or standardDSv5Family=20", text))
			continue
		}
		if !slices.ContainsFunc(known, func(quota string) bool { return strings.EqualFold(quota, name) }) {
			near := spelling.Nearest(name, known, spelling.Loose(name))
			problems = append(problems, fmt.Errorf("--quota %s: want the name cores, lowPriorityCores or a family of sizes such as %s, as "+
				"az vm list-usage shows", text, cmp.Or(near, "standardDSv5Family")))
		}
		quotas[name] = n
	}
	return quotas, errors.Join(problems...)
}

// CheckFree returns an error for each port that another program has, and for a state that another local Azure writes. A caller
// that has much to do before [Start] asks first.
func CheckFree(ctx context.Context, o Options) error {
	problems := []error{makeStateDir(o.State)}
	if file := keysFileOf(o.State); file != "" {
		if _, err := os.Stat(file); err == nil {
			_, unlock, err := lockKeys(file)
			if err == nil {
				err = unlock()
			}
			problems = append(problems, err)
		}
	}
	var config net.ListenConfig
	emulated, err := o.storageAddresses()
	problems = append(problems, err)
	for _, a := range slices.Concat(o.addresses(), o.nameServerAddress(), o.shareAddresses(), emulated) {
		listener, err := config.Listen(ctx, "tcp", a.text)
		if err != nil {
			problems = append(problems, listenError(a, err))
			continue
		}
		_ = listener.Close() // nothing was served
	}
	return errors.Join(problems...)
}

// otherSubscriptions parses the further subscriptions.
func (o *Options) otherSubscriptions() ([]core.Subscription, error) {
	var all []core.Subscription
	var problems []error
	seen := map[string]bool{strings.ToLower(o.subscription()): true}
	for _, text := range o.OtherSubscriptions {
		id, tenant, inTenant := strings.Cut(text, "=")
		switch {
		case !identities.IsGUID(id), inTenant && !identities.IsGUID(tenant):
			problems = append(problems,
				fmt.Errorf("--other-subscription %s: want a GUID, or GUID=GUID for a subscription and its tenant", text))
		case seen[strings.ToLower(id)]:
			problems = append(problems, fmt.Errorf("--other-subscription %s: this subscription exists already", text))
		default:
			all = append(all, core.Subscription{ID: id, Tenant: tenant})
		}
		seen[strings.ToLower(id)] = true
	}
	return all, errors.Join(problems...)
}

// tenants returns the further tenants that know the applications: the tenants of the identities file and of subscriptions.
func (s settings) tenants() []string {
	all := slices.Clone(s.identities.Guests)
	for _, o := range s.others {
		if o.Tenant != "" && !slices.ContainsFunc(all, func(t string) bool { return strings.EqualFold(t, o.Tenant) }) {
			all = append(all, o.Tenant)
		}
	}
	return all
}

// latencyFull and throttleOn are the values of --latency and --throttle that mean as on Azure.
const latencyFull, throttleOn = "azure", "azure"

func parseLatency(text string) (float64, error) {
	switch text {
	case "", "off":
		return 0, nil
	case latencyFull:
		return 1, nil
	}
	factor, err := strconv.ParseFloat(text, 64)
	if err != nil || factor < 0 || math.IsInf(factor, 0) || math.IsNaN(factor) {
		return 0, fmt.Errorf("--latency %s: want azure, off or a factor such as 0.1", text)
	}
	return factor, nil
}

// choose parses a flag with the values on and "off".
func choose(flag, text, on string) (bool, error) {
	switch text {
	case on:
		return true, nil
	case "", "off":
		return false, nil
	}
	return false, fmt.Errorf("%s %s: want %s or off", flag, text, on)
}

func readFaults(file string) ([]core.Fault, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--faults: %w", err)
	}
	faults, err := core.ParseFaults(text)
	if err != nil {
		return nil, fmt.Errorf("--faults %s: %w", file, userfile.Explain(err))
	}
	return faults, nil
}

// address is an address to listen at, with its flag.
type address struct{ flag, text string }

// addresses returns the addresses to listen at: TLS, plain, and the proxy if there is one.
func (o *Options) addresses() []address {
	anyPort := func(text string) string {
		if text == "" {
			return "127.0.0.1:0"
		}
		return text
	}
	all := []address{{"--address", anyPort(o.Address)}, {"--http-address", anyPort(o.HTTPAddress)}}
	if o.ProxyAddress != "" {
		all = append(all, address{"--proxy-address", o.ProxyAddress})
	}
	return all
}

func (a address) check() error {
	host, port, err := net.SplitHostPort(a.text)
	if err == nil && net.ParseIP(host) == nil && host != "localhost" {
		err = errors.New("the host is not an IP address")
	}
	if n, numeric := strconv.ParseUint(port, 10, 16); err == nil && numeric != nil {
		err = fmt.Errorf("the port is no number up to 65535 (%d)", n)
	}
	if err != nil {
		return fmt.Errorf("%s %s: want IP:PORT such as 127.0.0.1:8443, or port 0 for a free one", a.flag, a.text)
	}
	return nil
}

// listeners are the open ports.
type listeners struct{ tls, plain, proxy net.Listener }

func (l *listeners) all() []net.Listener {
	all := []net.Listener{l.tls, l.plain}
	if l.proxy != nil {
		all = append(all, l.proxy)
	}
	return all
}

// listen opens all ports. On failure it opens none and reports each port that it cannot open.
func listen(ctx context.Context, o Options) (*listeners, error) {
	var l listeners
	var problems []error
	var opened []net.Listener
	var config net.ListenConfig
	for i, a := range o.addresses() {
		listener, err := config.Listen(ctx, "tcp", a.text)
		if err != nil {
			problems = append(problems, listenError(a, err))
			continue
		}
		opened = append(opened, listener)
		*[]*net.Listener{&l.tls, &l.plain, &l.proxy}[i] = listener
	}
	if len(problems) > 0 {
		for _, listener := range opened {
			_ = listener.Close() // nothing was served
		}
		return nil, errors.Join(problems...)
	}
	return &l, nil
}

// reachable returns an address at which this machine reaches the listener: the loopback address for one that listens at
// all addresses.
func reachable(l net.Listener) string {
	tcp, ok := l.Addr().(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return l.Addr().String()
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(tcp.Port))
}

func portOf(rawURL string) string {
	_, port, err := net.SplitHostPort(client.HostOf(rawURL))
	if err != nil {
		return ""
	}
	return port
}

func listenError(a address, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s %s: the port is taken by another program; choose another port, or 0 for a free one", a.flag, a.text)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%s %s: this machine does not have the address", a.flag, a.text)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%s %s: not permitted; ports below 1024 are for root", a.flag, a.text)
	}
	return fmt.Errorf("%s %s: %w", a.flag, a.text, err)
}
