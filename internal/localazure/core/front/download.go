package front

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/message"
)

// Downloader gets the content at a URI that a request names, such as the URI of a linked template.
type Downloader func(ctx context.Context, uri string) ([]byte, error)

// The limits of a download, and of all downloads of a request.
const (
	downloadTimeout = 15 * time.Second
	mostDownloads   = 100
	mostDownloaded  = 16 << 20
)

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

// withDownloads calls f until it needs no further download.
func (f *Front) withDownloads(r *exchange, do func() error) error {
	size := 0
	for {
		err := do()
		missing, ok := errors.AsType[*behaviour.NotDownloaded](err)
		if !ok {
			return err
		}
		if r.Downloads == nil {
			r.Downloads = map[string]message.Downloaded{}
		}
		var got message.Downloaded
		switch {
		case len(r.Downloads) >= mostDownloads:
			return behaviour.Gateway(400, "InvalidContentLink", "The request needs more than %d downloads.", mostDownloads)
		case !strings.HasPrefix(missing.URI, "http://") && !strings.HasPrefix(missing.URI, "https://"):
			got.Err = fmt.Errorf("download %s: the URI is not one of HTTP", missing.URI)
		default:
			got.Text, got.Err = f.download(r.http.Context(), missing.URI)
			if size += len(got.Text); size > mostDownloaded {
				return behaviour.Gateway(400, "InvalidContentLink", "The request needs downloads of more than %d MB.", mostDownloaded>>20)
			}
		}
		r.Downloads[missing.URI] = got
	}
}
