package network

import "kaz/internal/emulator/behaviour"

func routeTables() behaviour.Type {
	return behaviour.Type{
		Name:  "Microsoft.Network/routeTables",
		Style: waiting(2, 3),
		Where: behaviour.Located,
		Own:   []string{"properties.resourceGuid", "properties.subnets"},
		Fill: func(c *behaviour.Call) error {
			guid(c)
			behaviour.Default(c.Doc, "properties.disableBgpRoutePropagation", false)
			behaviour.Default(c.Doc, "properties.routes", []any{})
			return nil
		},
	}
}

func routes() behaviour.Type {
	return behaviour.Type{
		Name:   "Microsoft.Network/routeTables/routes",
		Style:  waiting(2, 3),
		Inline: "properties.routes",
		Fill: func(c *behaviour.Call) error {
			behaviour.Default(c.Doc, "properties.hasBgpOverride", false)
			return nil
		},
	}
}
