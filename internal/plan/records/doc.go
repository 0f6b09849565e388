// Package records decides which record sets of Azure DNS are written for what ExternalDNS asks. It converts between the endpoints of
// ExternalDNS and the documents of Azure ([Read], [Set.Endpoint]), adjusts endpoints to what Azure can have ([Adjust]), and turns changes
// into ordered steps ([Decide]).
//
// A record set is only changed if it is what ExternalDNS saw, and each write carries the ETag of the set. What others have in a zone is
// never touched. A host that exists before and after the changes exists after each step, except during the two writes that replace a
// CNAME, which cannot stand beside other records. If the second write fails, the first one is undone.
//
// Layer L1.
package records
