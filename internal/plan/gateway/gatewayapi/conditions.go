package gatewayapi

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// problem says why something is not as an object asks. The zero value is no problem.
type problem struct{ reason, message string }

func (p problem) is() bool { return p.reason != "" }

func because[R ~string](reason R, format string, args ...any) problem {
	return problem{string(reason), fmt.Sprintf(format, args...)}
}

// condition returns a condition: true with a reason, unless there is a problem.
func condition[T ~string, R ~string](kind T, generation int64, reason R, message string, p problem) metav1.Condition {
	c := metav1.Condition{
		Type: string(kind), Status: metav1.ConditionTrue, ObservedGeneration: generation, Reason: string(reason), Message: message,
	}
	if p.is() {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, p.reason, p.message
	}
	return c
}

// supported are the features of the Gateway API that an application gateway has, in the order of their names. The suite of the Gateway API
// tests each of them.
var supported = []gatewayv1.FeatureName{
	"BackendTLSPolicy", "Gateway", "GatewayPort8080", "HTTPRoute",
	"HTTPRouteBackendProtocolWebSocket", "HTTPRouteHostRewrite", "HTTPRouteMethodMatching",
	"HTTPRouteNamedRouteRule", "HTTPRouteParentRefPort", "HTTPRoutePathRewrite", "HTTPRouteQueryParamMatching",
	"HTTPRouteResponseHeaderModification", "ListenerSet", "ReferenceGrant",
}

// ClassStatus returns the status of a GatewayClass of this controller.
func ClassStatus(c *gatewayv1.GatewayClass) gatewayv1.GatewayClassStatus {
	var p problem
	if ref := c.Spec.ParametersRef; ref != nil {
		p = because(gatewayv1.GatewayClassReasonInvalidParameters, "spec.parametersRef: %s %s is not read; the controller's "+
			"options say which application gateways there are, so leave it out", ref.Kind, ref.Name)
	}
	accepted := condition(gatewayv1.GatewayClassConditionStatusAccepted, c.Generation, gatewayv1.GatewayClassReasonAccepted,
		"Application gateways serve the Gateways of this class", p)
	status := gatewayv1.GatewayClassStatus{Conditions: []metav1.Condition{accepted}}
	for _, name := range supported {
		status.SupportedFeatures = append(status.SupportedFeatures, gatewayv1.SupportedFeature{Name: name})
	}
	return status
}
