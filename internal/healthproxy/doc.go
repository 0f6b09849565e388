// Package healthproxy answers the health probes of load balancers that speak the
// PROXY protocol: it takes the header off and asks kube-proxy, whose health server
// does not know it. Layer L3.
//
// Azure puts a PROXY header before everything that comes through a private link
// service with the PROXY protocol, its own probes included. A probe with a header of
// version 1 or 2 and one without any are all answered, so that one port serves load
// balancers of both kinds.
package healthproxy
