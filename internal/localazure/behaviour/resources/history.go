package resources

import (
	"cmp"
	"slices"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

// The history of a resource group has at most mostDeployments deployments. Azure deletes the oldest ones of a history with more than
// pruneAbove deployments, until pruneTo are left. Source: "Automatic deletions from deployment history" in Azure's documentation.
const (
	mostDeployments = 800
	pruneAbove      = 700
	pruneTo         = 600
)

// prune deletes the oldest deployments beside the one of the call. Azure does so as the caller, so a lock or a missing right keeps them.
func prune(c *behaviour.Call) {
	count := c.Count(c.ID.Parent(), deploymentType)
	if c.ID.Group() == "" || count <= pruneAbove || locked(c) {
		return
	}
	type ended struct {
		id azure.ID
		at time.Time
	}
	var all []ended
	for id, doc := range c.List(c.ID.Parent(), deploymentType) {
		if id.Equal(c.ID) || running(doc) {
			continue
		}
		at, _ := time.Parse(time.RFC3339Nano, behaviour.Text(doc, "properties.timestamp"))
		all = append(all, ended{id, at})
	}
	slices.SortStableFunc(all, func(a, b ended) int { return cmp.Compare(a.at.UnixNano(), b.at.UnixNano()) })
	for _, one := range all[:min(len(all), count-pruneTo)] {
		if c.Remove(c.Caller, one.id) != nil {
			return // the next deployment tries again
		}
	}
}

// locked reports whether a lock keeps the deployments of a resource group.
func locked(c *behaviour.Call) bool {
	for id := range c.List(azure.SubscriptionID(c.ID.Subscription()), "Microsoft.Authorization/locks") {
		if c.ID.Under(id.Parent()) {
			return true
		}
	}
	return false
}

// running reports whether a deployment has not ended.
func running(doc behaviour.Object) bool {
	state := behaviour.Text(doc, "properties.provisioningState")
	return !slices.Contains([]string{"Succeeded", "Failed", "Canceled"}, state)
}

// checkHistory refuses a deployment for which the history has no room.
func checkHistory(c *behaviour.Call) error {
	if c.ID.Group() == "" || c.Old != nil || c.Count(c.ID.Parent(), deploymentType) < mostDeployments {
		return nil
	}
	return behaviour.Gateway(409, "DeploymentQuotaExceeded", "Creating the deployment '%s' would exceed the quota of '%d'. The current "+
		"deployment count is '%d', please delete some deployments before creating a new one. Please see https://aka.ms/arm-deploy for "+
		"usage details.", c.ID.Name(), mostDeployments, c.Count(c.ID.Parent(), deploymentType))
}

// checkEnded refuses to delete a deployment that runs.
func checkEnded(c *behaviour.Call) error {
	if !running(c.Old) {
		return nil
	}
	return behaviour.Gateway(409, "DeploymentActive", "Unable to delete deployment '%s': it is still active. Cancel it, or wait until it "+
		"ends.", c.ID.Name())
}
