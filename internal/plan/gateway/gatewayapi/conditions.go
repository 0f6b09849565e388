package gatewayapi

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/pkg/features"
)

// problem says why something is not as an object asks. The zero value is no problem.
type problem struct{ reason, message string }

func (p problem) is() bool { return p.reason != "" }

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

// supported are the features of the Gateway API that an application gateway has. The suite of the Gateway API tests each of them.
var supported = []features.FeatureName{
	features.SupportGateway, features.SupportGatewayPort8080, features.SupportHTTPRoute, features.SupportHTTPRouteBackendProtocolWebSocket,
	features.SupportHTTPRouteBackendTimeout, features.SupportHTTPRouteHostRewrite, features.SupportHTTPRouteMethodMatching,
	features.SupportHTTPRouteNamedRouteRule, features.SupportHTTPRouteParentRefPort, features.SupportHTTPRoutePathRewrite,
	features.SupportHTTPRouteQueryParamMatching, features.SupportHTTPRouteRequestTimeout,
	features.SupportHTTPRouteResponseHeaderModification, features.SupportHTTPRoute303RedirectStatusCode,
	features.SupportHTTPRoute307RedirectStatusCode, features.SupportReferenceGrant,
}

// ClassStatus returns the status of a GatewayClass of this controller.
func ClassStatus(c *gatewayv1.GatewayClass) gatewayv1.GatewayClassStatus {
	var p problem
	if ref := c.Spec.ParametersRef; ref != nil {
		p = problem{string(gatewayv1.GatewayClassReasonInvalidParameters), "spec.parametersRef: " + string(ref.Kind) + " " + ref.Name +
			" is not read; the controller's options say which application gateways there are, so leave it out"}
	}
	status := gatewayv1.GatewayClassStatus{Conditions: []metav1.Condition{condition(gatewayv1.GatewayClassConditionStatusAccepted, c.Generation,
		gatewayv1.GatewayClassReasonAccepted, "Application gateways serve the Gateways of this class", p)}}
	for _, name := range slices.Sorted(slices.Values(supported)) {
		status.SupportedFeatures = append(status.SupportedFeatures, gatewayv1.SupportedFeature{Name: gatewayv1.FeatureName(name)})
	}
	return status
}
