// What a view can be: kinds of charts, classes of maps, ways to show the noise. Links name them, too.

export const KINDS = ["bars", "dots", "lines", "stacked", "share", "pyramid", "multiples"];
export const METHODS = ["quantile", "equal", "natural", "own"];
export const NOISE = ["off", "beside", "grey"];
