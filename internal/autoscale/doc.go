// Package autoscale serves scale sets as the node groups of cluster-autoscaler. Layer L3.
//
// cluster-autoscaler asks over gRPC and waits five seconds, so no call waits for Azure. Calls are answered from what is
// known. Changes are accepted at once and made in the background. One loop reads what Azure has. A machine that Azure
// refuses becomes an instance with an error. cluster-autoscaler then tries another group in its next loop.
package autoscale
