import { open } from "../page";
import { EVERYTHING } from "./everything";

open(EVERYTHING);
