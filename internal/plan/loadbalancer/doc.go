// Package loadbalancer decides what Azure must hold for the Services of type
// LoadBalancer: public IPs, the load balancer's frontends, rules and probes, the
// security group's rules, and the members of the backend pools.
// Layer L1: pure functions of Kubernetes objects and a snapshot of Azure.
//
// [Desired] takes the Services of one commit, few or all of the cluster. What
// belongs to other Services, or to none, stays as it is. Names, tags and values are
// the established ones of clusters on Azure, so that kaz takes over a running cluster
// without a write.
//
// A Service has one address in each of its IP families. Each address has a placement:
// a frontend of the external or of the internal load balancer, its own or that of
// another Service with the same address. All load balancers of a cluster and their
// security group are planned together.
//
// The packages below are the steps of a decision. Each imports only packages above it:
//
//	problem, address    what is wrong; IP addresses and families
//	cluster             the configuration and its ids; the role of a node
//	naming, tag         names and tags in Azure
//	spec                what a Service asks for, validated
//	index               the Services, nodes and Azure's documents, read once
//	batch               the Services of a decision with their placements
//	admission           whether what a Service names exists and can be read
//	publicip            public IPs, their tags and DNS labels
//	privatelink         private link services
//	placement           load balancer, frontend and public IP of each address
//	balancer            which load balancers exist, their order, frontends, rules and probes
//	backend             scale sets and machines; members of the backend pools
//	security            rules of the security group
//	note                resource groups that later decisions must know
//	query, leftover     what must be read; what deleted Services left behind
package loadbalancer
