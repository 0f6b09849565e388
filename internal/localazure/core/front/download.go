package front

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

// Downloader gets the content at a URI that a request names, such as the URI of a linked template.
type Downloader func(ctx context.Context, uri string) ([]byte, error)

// downloadTimeout is the limit of one download.
const downloadTimeout = 15 * time.Second

// errNoContent is the error of every URI from which no answer comes. It does not tell an address that is not allowed from one where
// nothing answers, so that a link cannot be used to look around on this machine and in its network.
var errNoContent = errors.New("the URI cannot be reached: only public addresses and the storage accounts of this local Azure are allowed")

// Download is the [Downloader] of a server. It reaches public addresses only, and uses no proxy.
func Download(ctx context.Context, uri string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, downloadTimeout)
	defer cancel()
	hr, err := http.NewRequestWithContext(ctx, http.MethodGet, uri, http.NoBody)
	if err != nil {
		return nil, errNoContent
	}
	reply, err := publicClient.Do(hr)
	if err != nil {
		return nil, errNoContent
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return nil, errors.New(reply.Status)
	}
	text, err := io.ReadAll(io.LimitReader(reply.Body, maxBody+1))
	if err == nil && len(text) > maxBody {
		err = errors.New("it is larger than 4 MB")
	}
	return text, err
}

// publicClient connects to public addresses only, also when a name or a redirect leads to another one.
var publicClient = &http.Client{Transport: &http.Transport{
	DialContext: (&net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil || !isPublic(to.Addr()) {
			return errNoContent
		}
		return nil
	}}).DialContext,
	TLSHandshakeTimeout: downloadTimeout,
	IdleConnTimeout:     time.Minute,
}}

// special are networks that are not public, in addition to those that netip knows: shared addresses, protocol assignments, benchmarks,
// reserved addresses, Azure's own address, and networks of IPv6 in which there are addresses of IPv4.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("168.63.129.16/32"),
	netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("2002::/16"),
	netip.MustParsePrefix("2001::/32"), netip.MustParsePrefix("fec0::/10"), netip.MustParsePrefix("::/96"),
}

// isPublic reports whether an address is on the internet, and not one of this machine.
func isPublic(ip netip.Addr) bool {
	ip = ip.Unmap()
	if !ip.IsGlobalUnicast() || ip.IsPrivate() || slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(ip) }) {
		return false
	}
	own, err := net.InterfaceAddrs()
	return err == nil && !slices.ContainsFunc(own, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.IP.Equal(net.IP(ip.AsSlice()))
	})
}
