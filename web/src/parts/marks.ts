// What a point looks like: a shape for each group, in turn, about 10 pixels wide around (0, 0), as the path of an SVG.
export const MARKS = [
  "M5 0A5 5 0 1 1 -5 0A5 5 0 1 1 5 0Z",
  "M-4.5 -4.5H4.5V4.5H-4.5Z",
  "M0 -6L5.5 4.5H-5.5Z",
  "M0 -6.5L5.5 0L0 6.5L-5.5 0Z",
  "M-5.5 -4.5H5.5L0 6Z",
  "M-2 -6H2V-2H6V2H2V6H-2V2H-6V-2H-2Z",
  "M0 -7L2 -2H7L3 1.5L4.5 6.5L0 3.5L-4.5 6.5L-3 1.5L-7 -2H-2Z",
];
