/**
 * The constants that a layout turns into, the same for every language.
 *
 * Both emitters print this one list, so a constant cannot exist in one language only, and its name
 * differs in nothing but its case.
 *
 * @module
 */
import { type Group, isArray, type Layout, type Structure, typeSize } from "./layout.ts";

/** A named number, in snake_case. */
export interface Constant {
  name: string;
  value: number;
  about: string;
}

/** Constants that belong together, under a heading. */
export interface ConstantGroup {
  heading: string;
  constants: Constant[];
}

/** All constants of the layout, in its order. The reasons are their own group, the last. */
export function constantGroups(layout: Layout): ConstantGroup[] {
  return [
    { heading: "The version of the layout.", constants: versionConstants(layout) },
    ...layout.structures.map(structureGroup),
    ...layout.enums.map((group) => valueGroup(group, [])),
    ...layout.flags.map((group) => valueGroup(group, [allBits(group)])),
    {
      heading: "Limits.",
      constants: layout.limits.map(({ name, value, about }) => ({ name, value, about })),
    },
    { heading: "Reason codes.", constants: reasonConstants(layout) },
  ].filter((group) => group.constants.length > 0);
}

function versionConstants(layout: Layout): Constant[] {
  const { major, minor } = layout.version;
  return [
    { name: "version_major", value: major, about: "Major version of the layout described here." },
    { name: "version_minor", value: minor, about: "Minor version of the layout described here." },
  ];
}

function structureGroup(structure: Structure): ConstantGroup {
  const { name, prefix, size, align } = structure;
  const constants: Constant[] = [
    { name: `${name}_size`, value: size, about: `Bytes of \`${name}\`.` },
    { name: `${name}_align`, value: align, about: `Alignment of \`${name}\`, in bytes.` },
  ];
  for (const field of structure.fields) {
    constants.push({
      name: `${prefix}_${field.name}_offset`,
      value: field.offset,
      about: `${field.type}${field.atomic ? ", atomic" : ""}. ${field.about}`,
    });
    if (field.atomic) {
      constants.push({
        name: `${prefix}_${field.name}_word`,
        value: field.offset / 4,
        about: `Index of \`${field.name}\` among the 32-bit words of \`${name}\`.`,
      });
    }
    if (isArray(field.type) && field.name !== "reserved") {
      const about = `Bytes of \`${field.name}\`.`;
      constants.push({ name: `${prefix}_${field.name}_size`, value: typeSize(field.type), about });
    }
  }
  return { heading: `\`${name}\`: ${structure.about}`, constants };
}

function valueGroup(group: Group, extra: Constant[]): ConstantGroup {
  const values = group.values.map(({ name, value, about }) => ({
    name: `${group.name}_${name}`,
    value,
    about,
  }));
  return { heading: `\`${group.name}\`: ${group.about}`, constants: [...values, ...extra] };
}

function allBits(group: Group): Constant {
  // Distinct single bits: their sum is their union, without JavaScript's signed 32-bit `|`.
  const value = group.values.reduce((sum, item) => sum + item.value, 0);
  return { name: `${group.name}_all`, value, about: `Every bit of \`${group.name}\`.` };
}

function reasonConstants(layout: Layout): Constant[] {
  return layout.reasons.map(({ name, value, about }) => ({
    name: `reason_${name.replace(".", "_")}`,
    value,
    about,
  }));
}
