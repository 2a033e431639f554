package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// parsedSchema is the part of JSON Schema 2020-12 that input is checked
// against: type, properties, required, default, additionalProperties, items,
// enum, const, anyOf, oneOf and the limits of sizes and numbers. Other keywords
// are for the model to read; whoever runs the tool checks them.
type parsedSchema struct {
	Type       typeNames                `json:"type"`
	Properties map[string]*parsedSchema `json:"properties"`
	Required   []string                 `json:"required"`
	Additional *parsedSchema            `json:"additionalProperties"`
	Items      *parsedSchema            `json:"items"`
	Enum       []any                    `json:"enum"`
	Const      json.RawMessage          `json:"const"`
	AnyOf      []*parsedSchema          `json:"anyOf"`
	OneOf      []*parsedSchema          `json:"oneOf"`
	Default    json.RawMessage          `json:"default"`

	Minimum          *float64 `json:"minimum"`
	Maximum          *float64 `json:"maximum"`
	ExclusiveMinimum *float64 `json:"exclusiveMinimum"`
	ExclusiveMaximum *float64 `json:"exclusiveMaximum"`
	MinLength        *float64 `json:"minLength"`
	MaxLength        *float64 `json:"maxLength"`
	MinItems         *float64 `json:"minItems"`
	MaxItems         *float64 `json:"maxItems"`

	nothing bool // the schema "false": no value fits
}

// typeNames is the keyword type: one name, or a list of them.
type typeNames []string

func (t *typeNames) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		var name string
		err := json.Unmarshal(data, &name)
		*t = typeNames{name}
		return err
	}
	return json.Unmarshal(data, (*[]string)(t))
}

func (p *parsedSchema) UnmarshalJSON(data []byte) error {
	switch string(bytes.TrimSpace(data)) {
	case "true":
		return nil
	case "false":
		p.nothing = true
		return nil
	}
	type fields parsedSchema // without this method
	return json.Unmarshal(data, (*fields)(p))
}

func parseSchema(text json.RawMessage) (*parsedSchema, error) {
	p := &parsedSchema{}
	if err := json.Unmarshal(text, p); err != nil {
		return nil, fmt.Errorf("parse input schema: %w", err)
	}
	if p.Type == nil {
		p.Type = typeNames{"object"} // tool input is never anything else
	}
	return p, nil
}

// accepts reports whether the keyword type allows a value of this kind.
func (p *parsedSchema) accepts(kind string) bool {
	for _, name := range p.Type {
		if name == kind || name == "integer" && kind == "number" {
			return true
		}
	}
	return len(p.Type) == 0
}

// branches are the alternatives of which one has to fit.
func (p *parsedSchema) branches() []*parsedSchema {
	if p.AnyOf != nil {
		return p.AnyOf
	}
	return p.OneOf
}

// requires reports whether the property must be present.
func (p *parsedSchema) requires(key string) bool {
	for _, name := range p.Required {
		if name == key {
			return true
		}
	}
	return false
}

// allowsNull reports whether null is a value of the schema, and not just
// another way to leave it out.
func (p *parsedSchema) allowsNull() bool {
	c := checker{}
	c.check(p, json.RawMessage("null"))
	return c.issues == nil
}
