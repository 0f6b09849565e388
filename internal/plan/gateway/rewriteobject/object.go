// Package rewriteobject reads AzureApplicationGatewayRewrite objects, which users of the Application Gateway Ingress Controller (AGIC)
// have, and makes the rewrite rule sets of an application gateway of them. Layer L1: values and nothing else.
//
// An object is taken as a whole or not at all: a set that lacks one of its rules may do what its author never meant.
package rewriteobject

import (
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Names of the custom resource; they are AGIC's.
const (
	Group    = "appgw.ingress.azure.io"
	Version  = "v1beta1"
	Kind     = "AzureApplicationGatewayRewrite"
	Resource = "azureapplicationgatewayrewrites"
)

// GroupVersionResource is what clients and informers read.
func GroupVersionResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: Group, Version: Version, Resource: Resource}
}

// Object is an AzureApplicationGatewayRewrite.
type Object struct {
	Metadata struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"metadata"`
	Spec Spec `json:"spec"`
}

// Spec is the rules of an object.
type Spec struct {
	RewriteRules []Rule `json:"rewriteRules"`
}

// Rule changes the requests and answers that all of its conditions match. Lower sequences go first.
type Rule struct {
	Name         string      `json:"name"`
	RuleSequence int32       `json:"ruleSequence"`
	Conditions   []Condition `json:"conditions"`
	Actions      Actions     `json:"actions"`
}

// Condition compares a variable with a regular expression.
type Condition struct {
	Variable   string `json:"variable"`
	Pattern    string `json:"pattern"`
	IgnoreCase bool   `json:"ignoreCase"`
	Negate     bool   `json:"negate"`
}

// Actions are what a rule does.
type Actions struct {
	RequestHeaders  []Header   `json:"requestHeaderConfigurations"`
	ResponseHeaders []Header   `json:"responseHeaderConfigurations"`
	URL             *URLChange `json:"urlConfiguration"`
}

// Header sets or deletes a header.
type Header struct {
	ActionType  string `json:"actionType"` // set, which is the default, or delete
	HeaderName  string `json:"headerName"`
	HeaderValue string `json:"headerValue"`
}

// URLChange replaces the path or the query of a request.
type URLChange struct {
	ModifiedPath        string `json:"modifiedPath"`
	ModifiedQueryString string `json:"modifiedQueryString"`
	Reroute             bool   `json:"reroute"`
}

// Decode reads an object from the content that the API server has: that of an unstructured object, for example.
func Decode(content map[string]any) (Object, error) {
	var o Object
	text, err := json.Marshal(content)
	if err == nil {
		err = json.Unmarshal(text, &o)
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return o, fmt.Errorf("%s is a %s; allowed is a %s", wrong.Field, wrong.Value, wrong.Type)
	}
	return o, err
}
