package app

import (
	frameworkapp "k8s.io/cloud-provider/app"
	"k8s.io/cloud-provider/app/config"
	"k8s.io/cloud-provider/names"
	genericmanager "k8s.io/controller-manager/app"

	"kaz/internal/cloudprovider"
	"kaz/internal/cloudprovider/ipam"
)

// checkRoutes returns an error if the route controller is enabled and cannot work.
func checkRoutes(c *config.CompletedConfig, cloud *cloudprovider.Cloud) error {
	shared := c.ComponentConfig.KubeCloudShared
	if _, supported := cloud.Routes(); !supported || !shared.ConfigureCloudRoutes ||
		!genericmanager.IsControllerEnabled(names.NodeRouteController, frameworkapp.ControllersDisabledByDefault,
			c.ComponentConfig.Generic.Controllers) {
		return nil
	}
	_, err := ipam.ClusterCIDR(shared.ClusterCIDR, "--configure-cloud-routes with a routeTableName in azure.json")
	return err
}
