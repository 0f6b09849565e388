package app

import (
	"context"
	"fmt"
	"maps"
	"sync"

	framework "k8s.io/cloud-provider"
	frameworkapp "k8s.io/cloud-provider/app"
	"k8s.io/cloud-provider/app/config"
	cliflag "k8s.io/component-base/cli/flag"
	genericmanager "k8s.io/controller-manager/app"
	"k8s.io/controller-manager/controller"

	"kaz/internal/cloudprovider"
	"kaz/internal/component/event"
	"kaz/internal/plan/joining"
)

// nodeApproval is the name of the controller that approves the requests of machines for the certificate of their node.
const nodeApproval = "node-approval-controller"

// addNodeApprovalFlag adds the controller's flag.
func addNodeApprovalFlag(sets *cliflag.NamedFlagSets, on *bool) {
	sets.FlagSet(nodeApproval).BoolVar(on, "approve-attested-nodes", false,
		"Approve the request of a machine for the certificate of its node if the signed document of Azure's metadata service in the "+
			"annotation "+joining.Annotation+" is of that machine, and deny other requests that were made with a join token. "+
			"The ClusterRoleBinding "+joining.Binding+", with which a join token is enough, is deleted.")
}

// withNodeApproval adds the controller to the framework's controllers. It runs only with its flag. It is part of running until it has no
// work in flight.
func withNodeApproval(controllers map[string]frameworkapp.ControllerInitFuncConstructor, on *bool,
	running *sync.WaitGroup) map[string]frameworkapp.ControllerInitFuncConstructor {
	all := maps.Clone(controllers)
	all[nodeApproval] = frameworkapp.ControllerInitFuncConstructor{
		InitContext: frameworkapp.ControllerInitContext{ClientName: nodeApproval},
		Constructor: func(init frameworkapp.ControllerInitContext, c *config.CompletedConfig,
			cloud framework.Interface) frameworkapp.InitFunc {
			return func(ctx context.Context, _ genericmanager.ControllerContext) (controller.Interface, bool, error) {
				azure, ours := cloud.(*cloudprovider.Cloud)
				if !*on || !ours {
					return nil, false, nil
				}
				return nil, true, startNodeApproval(ctx, init, c, azure, running)
			}
		},
	}
	return all
}

func startNodeApproval(ctx context.Context, init frameworkapp.ControllerInitContext, c *config.CompletedConfig, cloud *cloudprovider.Cloud,
	running *sync.WaitGroup) error {
	client := c.ClientBuilder.ClientOrDie(init.ClientName)
	events, stopEvents := event.NewRecorder(ctx, client, nodeApproval)
	a, err := cloud.Approver(client, c.SharedInformers.Certificates().V1().CertificateSigningRequests(), events)
	if err != nil {
		stopEvents()
		return fmt.Errorf("--approve-attested-nodes: %w", err)
	}
	running.Go(func() {
		defer stopEvents()
		a.Run(ctx)
	})
	return nil
}
