package failure

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/cluster/lint"
)

const (
	deploymentType = "Microsoft.Resources/deployments"
	operationType  = deploymentType + "/operations"
)

// Operation is a step of a deployment.
type Operation struct {
	Properties struct {
		State   string          `json:"provisioningState"`
		Message json.RawMessage `json:"statusMessage"`
		Target  struct {
			ID   azure.ID `json:"id"`
			Type string   `json:"resourceType"`
		} `json:"targetResource"`
	} `json:"properties"`
}

// Operations are the steps of a deployment.
func Operations(ctx context.Context, from azure.Reader, deployment azure.ID) ([]Operation, error) {
	return azure.ListAs[Operation](ctx, from, azure.Query{Scope: deployment, Type: operationType})
}

// Of is the error of a deployment that failed with a cause: an [Error] with the resources that failed, also those of nested deployments.
// A deployment has not failed if its caller stopped waiting.
func Of(ctx context.Context, from azure.Reader, deployment azure.ID, cause error) error {
	if azure.KindOf(cause) == azure.Canceled {
		return fmt.Errorf("stopped waiting for deployment %s, which goes on in Azure: %w", deployment.Name(), cause)
	}
	d := &Error{Deployment: deployment, Cause: cause}
	d.read(ctx, from, deployment, "", 0)
	return d
}

// read adds the resources of a deployment that failed. What cannot be read is left out.
func (d *Error) read(ctx context.Context, from azure.Reader, deployment azure.ID, path string, depth int) {
	operations, err := Operations(ctx, from, deployment)
	if err != nil || depth > lint.MostNested {
		return
	}
	for _, o := range operations {
		if o.Properties.State != "Failed" {
			continue
		}
		target := o.Properties.Target.ID
		at := strings.TrimPrefix(path+" > "+target.Name(), " > ")
		before := len(d.Failures)
		if strings.EqualFold(o.Properties.Target.Type, deploymentType) {
			d.read(ctx, from, target, at, depth+1)
		}
		if len(d.Failures) > before {
			continue
		}
		code, message := Innermost(o.Properties.Message)
		d.Failures = append(d.Failures, Resource{Path: at, ID: target, Code: code, Message: message, Remedy: Remedy(code, message)})
	}
}
