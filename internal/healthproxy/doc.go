// Package healthproxy answers health probes with a PROXY protocol header: it removes the header and
// forwards the probe to kube-proxy. Its health server does not understand the header. Layer L3.
//
// Azure prepends a PROXY header to all connections of a private link service with the PROXY protocol,
// including its own probes. The proxy answers probes with a header of version 1 or 2 and probes
// without one, so one port serves all load balancers.
package healthproxy
