// Package dns is the provider that ExternalDNS calls by its webhook protocol, for zones of Azure DNS. [Provider] finds the zones, reads
// their record sets and carries out the plans of internal/plan/records; [Server] speaks the protocol.
//
// An answer is complete or an error: a list without the records of one zone would have ExternalDNS create them again. Errors are answered
// 503, after which ExternalDNS tries again; all other errors end its process.
//
// Layer L3.
package dns
