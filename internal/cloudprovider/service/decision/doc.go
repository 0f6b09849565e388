// Package decision is what the service controller decides: a pure function of the Services, the
// cluster and Azure. Layer L3: it composes the planner of load balancers with what the API server
// has to be asked first, and writes nothing.
//
// [Cluster] gathers the input, [Target] decides about some Services, and [Commit] also says what
// has to be asked or recorded before its graph is applied.
package decision
